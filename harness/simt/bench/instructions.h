// Purpose: kernels that execute one class of instruction over and over, for timing.
// Contract: each is a module with one kernel `k` of one pointer parameter, for blocks of 32
// threads; block b works on bytes [16384 b, 16384 b + 16384) of the buffer. No finding is due.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kv::simt::bench {

struct InstructionClass {
  std::string name;
  /// One instruction (or a few, `per_body`), %R, %S, %T, %F, %G, %H and %O standing for registers
  /// and an offset that change from one to the next.
  std::string body;
  uint32_t per_body = 1;
};

inline constexpr uint32_t kBodies = 128, kLoops = 64, kBufferBytes = 2 * 16384;

std::vector<InstructionClass> instruction_classes();
std::string module_of(const InstructionClass& what);

}  // namespace kv::simt::bench
