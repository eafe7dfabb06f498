// Purpose: the programs that are damaged.
// Contract: taken from the built files of this tree, in a fixed order; a file that cannot be read
// is a failed check.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kv::simt::hostile {

using Bytes = std::vector<uint8_t>;

/// Every fat binary inside a linked file.
std::vector<Bytes> fatbins_of(const std::string& path);

/// The PTX of a fat binary.
std::vector<std::string> texts_of(const Bytes& fatbin);

/// One module for each kernel of `text`: the kernel, what stands before the first one, and what
/// stands after the last function (the names of files). Those that need another function of the
/// module are left out.
std::vector<std::string> kernels_of(const std::string& text);

std::string read_file(const std::string& path);

}  // namespace kv::simt::hostile
