// Purpose: names and sentences of the runtime's error codes, and the one place that prints.
// Contract: notice() writes each distinct sentence once to standard error; nothing else in this
// library writes there.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace kv::simt::cudart {

/// "cudaErrorInvalidValue"; never null.
const char* error_name(cudaError_t error);
/// "invalid argument"; never null.
const char* error_sentence(cudaError_t error);

/// A C++ name as in the source; what is none stays as it is.
std::string demangled(const std::string& name);

/// Says something that a person must see although the program goes on.
void notice(const std::string& sentence);

/// Prints the sentence and ends the process with `status`: for an environment that cannot be used.
[[noreturn]] void refuse_to_run(const std::string& sentence, int status);

}  // namespace kv::simt::cudart
