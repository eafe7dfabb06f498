#include "harness/case/random_words.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "harness/core/check.h"
#include "harness/core/philox.h"

namespace kv {
namespace {

#if defined(__SSE2__)

// Two Philox blocks in the low halves of 64-bit lanes. Only low halves are ever multiplied, so
// what shifts and products leave in the upper halves does not matter.
struct TwoBlocks {
  __m128i c0, c1, c2, c3;

  void round(__m128i k0, __m128i k1) {
    const __m128i p0 = _mm_mul_epu32(c0, _mm_set1_epi64x(0xD2511F53));
    const __m128i p1 = _mm_mul_epu32(c2, _mm_set1_epi64x(0xCD9E8D57));
    c0 = _mm_xor_si128(_mm_xor_si128(_mm_srli_epi64(p1, 32), c1), k0);
    c2 = _mm_xor_si128(_mm_xor_si128(_mm_srli_epi64(p0, 32), c3), k1);
    c1 = p1;
    c3 = p0;
  }
};

// The low halves of the lanes of a, then of b.
__m128i low_halves(__m128i a, __m128i b) {
  return _mm_castps_si128(
      _mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), _MM_SHUFFLE(2, 0, 2, 0)));
}

void store(const TwoBlocks& a, const TwoBlocks& b, uint32_t* out) {
  const auto put = [out](int word, __m128i lanes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 8 * word), lanes);
  };
  put(0, low_halves(a.c0, b.c0));
  put(1, low_halves(a.c1, b.c1));
  put(2, low_halves(a.c2, b.c2));
  put(3, low_halves(a.c3, b.c3));
}

void eight_blocks(uint64_t key, uint32_t first, uint32_t* out) {
  const __m128i zero = _mm_setzero_si128();
  const auto start = [&](uint32_t block) {
    return TwoBlocks{_mm_set_epi64x(block + 1, block), zero, zero, zero};
  };
  TwoBlocks a = start(first), b = start(first + 2), c = start(first + 4), d = start(first + 6);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const __m128i wide_k0 = _mm_set1_epi32(static_cast<int>(k0));
    const __m128i wide_k1 = _mm_set1_epi32(static_cast<int>(k1));
    a.round(wide_k0, wide_k1);
    b.round(wide_k0, wide_k1);
    c.round(wide_k0, wide_k1);
    d.round(wide_k0, wide_k1);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  store(a, b, out);
  store(c, d, out + 4);
}

// The same with four blocks in one register.
struct FourBlocks {
  __m256i c0, c1, c2, c3;
};

[[gnu::target("avx2")]] void round(FourBlocks& b, __m256i k0, __m256i k1) {
  const __m256i p0 = _mm256_mul_epu32(b.c0, _mm256_set1_epi64x(0xD2511F53));
  const __m256i p1 = _mm256_mul_epu32(b.c2, _mm256_set1_epi64x(0xCD9E8D57));
  b.c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), b.c1), k0);
  b.c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), b.c3), k1);
  b.c1 = p1;
  b.c3 = p0;
}

// The low halves of the lanes of a, then of b.
[[gnu::target("avx2")]] void put(__m256i a, __m256i b, uint32_t* out) {
  const __m256 mixed =
      _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), _MM_SHUFFLE(2, 0, 2, 0));
  const __m256i ordered =
      _mm256_permute4x64_epi64(_mm256_castps_si256(mixed), _MM_SHUFFLE(3, 1, 2, 0));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), ordered);
}

[[gnu::target("avx2")]] FourBlocks start(uint32_t block) {
  const __m256i zero = _mm256_setzero_si256();
  return {_mm256_set_epi64x(block + 3, block + 2, block + 1, block), zero, zero, zero};
}

[[gnu::target("avx2")]] void store(const FourBlocks& a, const FourBlocks& b, uint32_t* out) {
  put(a.c0, b.c0, out);
  put(a.c1, b.c1, out + 8);
  put(a.c2, b.c2, out + 16);
  put(a.c3, b.c3, out + 24);
}

// 16 blocks: two groups of words, in four chains that do not wait for each other.
[[gnu::target("avx2")]] void sixteen_blocks(uint64_t key, uint32_t first, uint32_t* out) {
  FourBlocks blocks[4];
  for (uint32_t i = 0; i < 4; ++i) blocks[i] = start(first + 4 * i);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int i = 0; i < 10; ++i) {
    const __m256i wide_k0 = _mm256_set1_epi32(static_cast<int>(k0));
    const __m256i wide_k1 = _mm256_set1_epi32(static_cast<int>(k1));
    for (FourBlocks& b : blocks) round(b, wide_k0, wide_k1);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  store(blocks[0], blocks[1], out);
  store(blocks[2], blocks[3], out + 32);
}

// The same where one instruction joins three words and there are registers for all chains.
#define KV_AVX512 [[gnu::target("avx2,avx512f,avx512vl")]]

KV_AVX512 void round512(FourBlocks& b, __m256i k0, __m256i k1) {
  constexpr int kXorOfThree = 0x96;
  const __m256i p0 = _mm256_mul_epu32(b.c0, _mm256_set1_epi64x(0xD2511F53));
  const __m256i p1 = _mm256_mul_epu32(b.c2, _mm256_set1_epi64x(0xCD9E8D57));
  b.c0 = _mm256_ternarylogic_epi64(_mm256_srli_epi64(p1, 32), b.c1, k0, kXorOfThree);
  b.c2 = _mm256_ternarylogic_epi64(_mm256_srli_epi64(p0, 32), b.c3, k1, kXorOfThree);
  b.c1 = p1;
  b.c3 = p0;
}

KV_AVX512 void sixteen_blocks512(uint64_t key, uint32_t first, uint32_t* out) {
  FourBlocks a = start(first), b = start(first + 4);
  FourBlocks c = start(first + 8), d = start(first + 12);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
#pragma GCC unroll 10
  for (int i = 0; i < 10; ++i) {
    const __m256i wide_k0 = _mm256_set1_epi32(static_cast<int>(k0));
    const __m256i wide_k1 = _mm256_set1_epi32(static_cast<int>(k1));
    round512(a, wide_k0, wide_k1);
    round512(b, wide_k0, wide_k1);
    round512(c, wide_k0, wide_k1);
    round512(d, wide_k0, wide_k1);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  store(a, b, out);
  store(c, d, out + 32);
}

using SixteenBlocks = void (*)(uint64_t key, uint32_t first, uint32_t* out);
/// By Cpu.
constexpr SixteenBlocks kSixteenBlocks[] = {nullptr, &sixteen_blocks, &sixteen_blocks512};

#else

using SixteenBlocks = void (*)(uint64_t key, uint32_t first, uint32_t* out);
constexpr SixteenBlocks kSixteenBlocks[] = {nullptr};

void eight_blocks(uint64_t key, uint32_t first, uint32_t* out) {
  for (uint32_t lane = 0; lane < 8; ++lane) {
    const auto block = Philox{key}.block(0, first + lane);
    for (uint32_t word = 0; word < 4; ++word) out[8 * word + lane] = block[word];
  }
}

#endif

}  // namespace

void random_words(uint64_t key, std::span<uint32_t> words) {
  random_words(key, words, chosen_cpu());
}

void random_words(uint64_t key, std::span<uint32_t> words, Cpu cpu) {
  KV_CHECK(words.size() % 32 == 0, "random words come in groups of 32");
  size_t group = 0;
  if (const SixteenBlocks sixteen = kSixteenBlocks[static_cast<size_t>(cpu)]) {
    for (; (group + 2) * 32 <= words.size(); group += 2)
      sixteen(key, static_cast<uint32_t>(8 * group), words.data() + 32 * group);
  }
  for (; group * 32 < words.size(); ++group) {
    eight_blocks(key, static_cast<uint32_t>(8 * group), words.data() + 32 * group);
  }
}

}  // namespace kv
