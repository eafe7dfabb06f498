// What the bytes of K and V tell apart.
#include "harness/engine/content.h"

#include <gtest/gtest.h>

#include "harness/core/formats.h"

namespace kv {
namespace {

std::vector<std::byte> key_of(const Case& c, const StoredToken& token) {
  const Content content(c);
  std::vector<std::byte> bytes(content.key_bytes());
  content.key(token, {}, bytes);
  return bytes;
}

// Kills: bytes by which a check cannot see that K is another token's of the same position.
TEST(Content, KeysOfOnePositionAreTheirTokens) {
  for (const Design design : {Design::kNormal, Design::kSubsetSelect}) {
    for (const DType type : {DType::kF16, DType::kBf16, DType::kF32}) {
      Case c;
      c.shape.head_dim_k = c.shape.head_dim_v = 8;
      c.shape.query_dtype = c.shape.kv_dtype = c.shape.output_dtype = type;
      c.data.design = design;
      for (int64_t position = 0; position < 16; ++position) {
        const StoredToken token{.history = 5, .previous = 4, .position = position};
        StoredToken other = token;
        other.history = 6;
        EXPECT_EQ(key_of(c, token), key_of(c, token));
        EXPECT_NE(key_of(c, token), key_of(c, other));
      }
    }
  }
}

// Kills: a key that is hidden less well than the design says, or is not hidden from its own
// queries' column alone.
TEST(Content, SelectedKeysStayZeroWhereTheyAreSelected) {
  Case c;
  c.shape.head_dim_k = c.shape.head_dim_v = 8;
  c.shape.kv_dtype = c.shape.query_dtype = DType::kF16;
  c.data.design = Design::kSubsetSelect;
  for (int64_t position = 0; position < 8; ++position) {
    const auto bytes = key_of(c, {.history = 77, .previous = 1, .position = position});
    std::vector<double> row(8);
    decode_row(DType::kF16, bytes.data(), row.size(), row.data());
    for (int64_t i = 0; i < 8; ++i) {
      if (i == position) {
        EXPECT_EQ(row[i], 0);
      } else {
        EXPECT_LE(row[i] * c.shape.scale, -64);
      }
    }
  }
}

}  // namespace
}  // namespace kv
