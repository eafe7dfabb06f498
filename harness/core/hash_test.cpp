#include "harness/core/hash.h"

#include <gtest/gtest.h>

namespace kv {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Hash, KnownAnswers) {
  // XXH3_64bits of the empty input, as the xxHash specification gives it.
  EXPECT_EQ(hash_bytes({}), 0x2d06800538d394c2u);
}

TEST(Hash, PiecesGiveTheSameAsTheWhole) {
  const std::string text(1000, 'x');
  Hasher hasher;
  hasher.add_text(text.substr(0, 333));
  hasher.add_text(text.substr(333));
  EXPECT_EQ(hasher.digest(), hash_bytes(bytes_of(text)));
}

TEST(Hash, OneChangedByteChangesTheDigest) {
  EXPECT_NE(hash_bytes(bytes_of("kverify")), hash_bytes(bytes_of("kverifz")));
}

TEST(Hash, IntegersAreHashedAsTheirBytes) {
  Hasher hasher;
  hasher.add(uint32_t{0x64636261});
  EXPECT_EQ(hasher.digest(), hash_bytes(bytes_of("abcd")));
}

TEST(Hash, HexadecimalKeepsLeadingZeros) { EXPECT_EQ(hex64(0xabc), "0000000000000abc"); }

}  // namespace
}  // namespace kv
