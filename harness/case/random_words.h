// Purpose: Philox words for a whole row at once; the data function lives on it.
// Contract: words[32 g + 8 w + l] is word w of block 8 g + l of the stream `key` (counter high
// half 0): eight blocks abreast, so that no transposition is needed. The same words with and
// without SIMD. `words` holds a multiple of 32.
#pragma once

#include <cstdint>
#include <span>

#include "harness/core/cpu.h"

namespace kv {

void random_words(uint64_t key, std::span<uint32_t> words);

/// The same with the instructions of `cpu`, at most best_cpu().
void random_words(uint64_t key, std::span<uint32_t> words, Cpu cpu);

}  // namespace kv
