// Purpose: the operand values that a form is tried with.
// Contract: deterministic; edge values first, then pseudo-random ones.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace kv::simt::semantics {

/// Bytes of the register that holds a value of this operand type; 0 for "pred".
uint32_t operand_bytes(std::string_view type);
/// Edge values of a type, each once.
std::vector<uint64_t> edge_values(std::string_view type);
/// `index`-th pseudo-random value of a type; floats favour values of like magnitude.
uint64_t random_value(std::string_view type, uint64_t index);

/// Operand tuples, one vector for each operand and all of the same length, a multiple of 32: all
/// combinations of edge values if they are at most `limit`, else a sample, then random tuples.
std::vector<std::vector<uint64_t>> operand_tuples(const std::vector<std::string_view>& types,
                                                  uint64_t limit);

}  // namespace kv::simt::semantics
