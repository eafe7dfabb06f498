// Fails when a field of a case is lost on its way to the worker, or bytes that are no case read
// past their end.
#include "harness/run/case_codec.h"

#include <gtest/gtest.h>

namespace kv {
namespace {

/// Every kind of member: lists, options, texts, operations with and without members.
Case full_case() {
  Case c;
  c.name = "n";
  c.shape.scale = -0.3f;
  c.shape.rope = {.pairing = RopePairing::kInterleaved, .dims = 8, .theta = 12.5};
  c.mask.first_number = ~uint64_t{0};
  c.pool.layout = CacheLayout::kInterleaved;
  c.data.digest = 7;
  c.data.overrides = {{.tensor = 1, .request = RequestId(3), .slot = 1u << 20, .value = -1e30}};
  c.data.view.logit_shift = 0.1;
  c.ops = {op::Admit{.request = RequestId(1), .prefix_of = RequestId(0), .prefix_tokens = 5},
           op::Step{.rows = {{.request = RequestId(1), .append = 2, .tree_parents = {-1, 0}}}},
           op::Reorder{.beams = {RequestId(1), RequestId(2)}, .sources = {RequestId(2)}},
           op::Defrag{}, op::Hostile{.kind = op::Hostile::Kind::kStepInFlightTwice}};
  c.exec.preceding = {"a", "", "b"};
  c.exec.relation = "alone";
  c.exec.rounding = Rounding::kMmaHopper;
  c.engine = EngineLevel{.groups = {{.layers = 2, .window_left = 4}}};
  return c;
}

TEST(CaseCodec, GivesTheVeryCase) {
  EXPECT_EQ(decode_case(encode_case(full_case())), full_case());
  EXPECT_EQ(decode_case(encode_case(Case{})), Case{});
}

TEST(CaseCodec, RefusesEveryTruncationAndWhatIsTooLong) {
  std::vector<std::byte> whole = encode_case(full_case());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(decode_case(std::span(whole).first(size)).has_value()) << size;
  whole.push_back(std::byte{0});
  EXPECT_FALSE(decode_case(whole).has_value());
}

}  // namespace
}  // namespace kv
