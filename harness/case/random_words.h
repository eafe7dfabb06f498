// Purpose: Philox words for a whole row at once; the data function lives on it.
// Contract: words[32 g + 8 w + l] is word w of block 8 g + l of the stream `key` (counter high
// half 0): eight blocks abreast, so that no transposition is needed. The same words with and
// without SIMD. `words` holds a multiple of 32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace kv {

void random_words(uint64_t key, std::span<uint32_t> words);

/// The ways to make them that this machine has, the plainest is way 0. The last is chosen, or the
/// first where the environment says KVERIFY_CPU=portable.
size_t random_word_ways();
void random_words(uint64_t key, std::span<uint32_t> words, size_t way);

}  // namespace kv
