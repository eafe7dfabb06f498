// Purpose: mutation and crossover that know what a case is made of.
// Contract: pure functions of their arguments and the seed. Chunks: one part is changed, or drawn
// anew; operations are inserted, dropped, doubled, exchanged; crossover takes each part from either
// parent, and the operations of one up to a point, then of the other. Cases (inputs that are JSON):
// a length, a page size, a window moves by one, or one part is taken from another case; what comes
// out is a case that check_case and Timeline accept, or nothing.
// Example:  mutate(chunks, seed, LLVMFuzzerMutate); auto child = mutated_case(parent, other, seed);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "fuzz/parts.h"
#include "harness/case/case.h"

namespace kv::fuzzing {

/// Changes bytes in place and returns their number, at most `size_max`: LLVMFuzzerMutate.
using MutateBytes = size_t (*)(uint8_t* data, size_t size, size_t size_max);

/// `operations`: as many are drawn where all of an input is, of up to 8 any number; what lies
/// behind them are the simplest ones.
void mutate(Chunks& chunks, uint32_t seed, MutateBytes mutate_bytes, size_t operations = 8);
Chunks crossed(const Chunks& a, const Chunks& b, uint32_t seed);

/// `other`: where parts are taken from: another input, or a fresh draw.
std::optional<Case> mutated_case(const Case& parent, const Case& other, uint32_t seed);

}  // namespace kv::fuzzing
