#include "harness/core/philox.h"

#include <gtest/gtest.h>

namespace kv {
namespace {

using Block = std::array<uint32_t, 4>;

// Known answers of the authors' Random123 library (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswerForZero) {
  EXPECT_EQ((Philox{.key = 0}.block(0, 0)),
            (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST(Philox, KnownAnswerForAllOnes) {
  constexpr uint64_t kOnes = ~uint64_t{0};
  EXPECT_EQ((Philox{.key = kOnes}.block(kOnes, kOnes)),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, KnownAnswerForDigitsOfPi) {
  // Counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0, low word first.
  const Philox pi{.key = uint64_t{0x299f31d0} << 32 | 0xa4093822};
  EXPECT_EQ(
      pi.block(uint64_t{0x03707344} << 32 | 0x13198a2e, uint64_t{0x85a308d3} << 32 | 0x243f6a88),
      (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, WordIsTheFirstHalfOfTheBlock) {
  const Philox p{.key = 7};
  const Block block = p.block(1, 2);
  EXPECT_EQ(p.word(1, 2), uint64_t{block[1]} << 32 | block[0]);
}

}  // namespace
}  // namespace kv
