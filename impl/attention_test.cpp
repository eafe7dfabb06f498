// kvattn as an inference server uses it, against attention from its definition.
#include "kvattn/attention.h"

#include <gtest/gtest.h>

#include "impl/serving_test.h"

namespace kvattn {
namespace {

using namespace kvattn::testing;

AttentionShape shape_of(DType dtype, int64_t head_dim) {
  return {.query_heads = 4,
          .kv_heads = 2,
          .head_dim = head_dim,
          .page_slots = 16,
          .dtype = dtype,
          .scale = head_dim == 64 ? 0.125f : 0.0883883461f};
}

/// What a result may be off by, for weights that add up to 1.
struct Tolerance {
  double unit;     // rounding of the output
  double weights;  // relative error of a weight: fp32 arithmetic, rounding of P, tanh.approx
};

Tolerance tolerance_of(const AttentionShape& s, bool rounds_weights) {
  const double unit = s.dtype == DType::kF16 ? 0x1p-11 : s.dtype == DType::kBF16 ? 0x1p-8 : 0x1p-24;
  return {1.01 * unit, 1e-5 + (rounds_weights ? 1.01 * unit : 0) + 2 * 0x1p-11 * s.softcap};
}

void expect_right(const Server& server, const std::vector<StepRow>& rows, const StepResult& got) {
  const AttentionShape& s = server.shape();
  const Tolerance t = tolerance_of(s, got.rounds_weights);
  int64_t token = 0;
  for (size_t b = 0; b < rows.size(); ++b) {
    for (int32_t i = 0; i < rows[b].queries; ++i, ++token) {
      for (int64_t h = 0; h < s.query_heads; ++h) {
        SCOPED_TRACE(sentence(got.variant, ": request ", b, ", query ", i, ", head ", h));
        const ExpectedRow want = expected_row(s, server.modifiers(), rows[b], i, h);
        const float lse = got.lse[token * s.query_heads + h];
        if (std::isinf(want.lse)) {
          ASSERT_EQ(lse, want.lse);
        } else {
          ASSERT_NEAR(lse, want.lse, 2e-6 * (4 + std::abs(want.lse)) + 0x1p-11 * s.softcap);
        }
        for (int64_t d = 0; d < s.head_dim; ++d) {
          ASSERT_NEAR(got.output[(token * s.query_heads + h) * s.head_dim + d], want.output[d],
                      t.unit * std::abs(want.output[d]) + t.weights * want.magnitude[d] + 0x1p-25)
              << "dimension " << d;
        }
      }
    }
  }
}

void serve(Server& server, const std::vector<StepRow>& rows, StepOptions options = {}) {
  expect_right(server, rows, server.step(rows, options));
}

/// A kernel variant, "" for the library's choice, with a dtype and a head dimension.
struct Kind {
  DType dtype;
  int64_t head_dim;
  const char* variant;
};
std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    for (int64_t head_dim : {64, 128}) {
      all.push_back({dtype, head_dim, ""});
      all.push_back({dtype, head_dim, "reference"});
      if (dtype != DType::kF32) all.push_back({dtype, head_dim, "prefill"});
    }
  }
  for (int64_t head_dim : {8, 72, 80, 96, 192, 256}) {
    all.push_back({DType::kF16, head_dim, ""});
    all.push_back({DType::kF32, head_dim, ""});
  }
  return all;
}
class EveryKind : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Attention, EveryKind, ::testing::ValuesIn(kinds()), [](const auto& info) {
  const Kind& kind = info.param;
  return sentence(dtype_name(kind.dtype), "_", kind.head_dim, *kind.variant ? "_" : "",
                  kind.variant);
});

// Prefill, a mixed step in which a third request joins, then decode of all: the life of a batch.
TEST_P(EveryKind, ServesABatch) {
  const AttentionShape s = shape_of(GetParam().dtype, GetParam().head_dim);
  Server server(s, 32);
  Request a{.seed = 1}, b{.seed = 2}, c{.seed = 3};
  const std::vector<std::vector<StepRow>> steps = {{{&a, 37, 37}, {&b, 5, 5}},
                                                   {{&a, 1, 1}, {&c, 18, 18}, {&b, 3, 3}},
                                                   {{&b, 1, 1}, {&a, 1, 1}, {&c, 1, 1}}};
  for (const auto& rows : steps) serve(server, rows, {.variant = GetParam().variant});
}

TEST_P(EveryKind, DecodesALongContext) {
  AttentionShape s = shape_of(GetParam().dtype, GetParam().head_dim);
  s.kv_heads = 4;
  Server server(s, 32);
  Request a{.seed = 4};
  serve(server, {{&a, 300, 0}});
  serve(server, {{&a, 1, 1}}, {.variant = GetParam().variant});
}

TEST(Attention, MergesSplitsOfEverySize) {
  for (DType dtype : {DType::kF16, DType::kF32}) {
    const AttentionShape s = shape_of(dtype, 64);
    Server server(s, 32);
    Request a{.seed = 22}, b{.seed = 23}, c{.seed = 24, .pad_left = 70};
    serve(server, {{&a, 100, 0}, {&b, 7, 0}, {&c, 75, 0}});
    // Down to one slot: more splits than tiles, and c's first splits see nothing.
    for (uint32_t split : {1, 3, 16, 32, 33, 64, 100, 101, 4096}) {
      SCOPED_TRACE(sentence("split of ", split));
      serve(server, {{&a, 0, 1}, {&b, 0, 1}, {&c, 0, 1}}, {.split_slots = split});
    }
  }
}

TEST(Attention, SplitsLeaveOutWhatAWindowHides) {
  AttentionShape s = shape_of(DType::kF16, 64);
  s.window_left = 20;
  Server server(s, 32);
  Request a{.seed = 25};
  serve(server, {{&a, 130, 0}});
  serve(server, {{&a, 0, 1}}, {.split_slots = 32});
}

TEST(Attention, AppliesScoreModifiersInEveryVariant) {
  const HeadModifiers modifiers[] = {
      {.alibi_slopes = {0.5f, 0.25f, 0.125f, 0.0625f}}, {.sinks = {-2, 0, 1.5f, 30}}, {}};
  for (const HeadModifiers& m : modifiers) {
    for (float softcap : {0.0f, 2.0f}) {
      for (const char* variant : {"", "reference", "prefill"}) {
        AttentionShape s = shape_of(DType::kF16, 64);
        s.scale = 0.5f;  // logits that the cap bends
        s.softcap = softcap;
        Server server(s, 32, m);
        Request a{.seed = 26}, b{.seed = 27};
        SCOPED_TRACE(sentence("softcap ", softcap, m.sinks.empty() ? "" : ", sinks"));
        serve(server, {{&a, 40, 40}, {&b, 2, 5}}, {.variant = variant});
        serve(server, {{&a, 1, 1}, {&b, 1, 1}}, {.variant = variant, .split_slots = 16});
      }
    }
  }
}

TEST(Attention, FollowsEveryMask) {
  for (Causal causal : {Causal::kNone, Causal::kTopLeft, Causal::kBottomRight}) {
    for (int64_t window : {int64_t{-1}, int64_t{0}, int64_t{7}, int64_t{40}, INT64_MAX}) {
      AttentionShape s = shape_of(DType::kF32, 64);
      s.causal = causal;
      s.window_left = window;
      s.window_right = causal == Causal::kNone ? window : -1;
      Server server(s, 32);
      Request a{.seed = 5}, b{.seed = 6};
      // More queries than slots: the first ones see nothing under bottom-right alignment.
      const std::vector<StepRow> rows = {{&a, 50, 9}, {&b, 3, 6}};
      SCOPED_TRACE(sentence("causal ", static_cast<int>(causal), ", window ", window));
      serve(server, rows);
    }
  }
}

TEST(Attention, NeverReadsPadding) {
  const AttentionShape s = shape_of(DType::kF16, 64);
  Server server(s, 32);
  Request left{.seed = 7, .pad_left = 20}, right{.seed = 8, .pad_right = 9},
      all{.seed = 9, .pad_left = 12};
  const std::vector<StepRow> rows = {{&left, 40, 40}, {&right, 40, 40}, {&all, 12, 12}};
  serve(server, rows);
}

TEST(Attention, TakesEveryPageSize) {
  for (int64_t page_slots = 1; page_slots <= 256; page_slots *= 2) {
    AttentionShape s = shape_of(DType::kBF16, 64);
    s.page_slots = page_slots;
    Server server(s, 300);
    Request a{.seed = 10}, b{.seed = 11};
    for (const auto& rows : {std::vector<StepRow>{{&a, 31, 2}, {&b, 1, 1}},
                             {{&a, 2, 2}, {&b, 1, 1}},
                             {{&b, 70, 1}, {&a, 1, 1}}}) {
      SCOPED_TRACE(sentence("page_slots ", page_slots));
      serve(server, rows);
    }
  }
}

TEST(Attention, TakesEveryHeadGroup) {
  for (int64_t kv_heads : {1, 2, 3, 6}) {
    AttentionShape s = shape_of(DType::kF32, 64);
    s.query_heads = 6;
    s.kv_heads = kv_heads;
    Server server(s, 32);
    Request a{.seed = 12}, b{.seed = 13};
    for (const auto& rows :
         {std::vector<StepRow>{{&a, 10, 10}, {&b, 33, 1}}, {{&a, 1, 1}, {&b, 1, 1}}}) {
      SCOPED_TRACE(sentence("kv_heads ", kv_heads));
      serve(server, rows);
    }
  }
}

// Fails when heads for which K and V come into shared memory, two to sixteen to a block, are given
// other numbers than those that read them by themselves, or numbers of another head.
TEST(Attention, DecodeGivesAHeadTheSameBitsInAGroupOfAnySize) {
  constexpr int64_t kFew = 2;
  for (const auto& [dtype, head_dim] : {std::pair{DType::kF16, int64_t{64}},
                                        {DType::kBF16, 128},
                                        {DType::kF16, 72},
                                        {DType::kF16, 256}}) {
    AttentionShape s = shape_of(dtype, head_dim);
    s.kv_heads = 1;
    s.query_heads = kFew;
    s.window_left = 600;
    Server few(s, 64);
    Request a{.seed = 26, .pad_left = 70};
    few.step({{&a, 771, 0}});
    const StepResult want = few.step({{&a, 0, 1}}, {.split_slots = 512});
    for (const int64_t heads : {5, 8, 16, 37}) {
      SCOPED_TRACE(sentence(heads, " heads of ", head_dim));
      s.query_heads = heads;
      Server many(s, 64);
      Request same{.seed = 26, .pad_left = 70};
      many.step({{&same, 771, 0}});
      const std::vector<StepRow> rows = {{&same, 0, 1}};
      const StepResult got = many.step(rows, {.split_slots = 512});
      EXPECT_EQ(got.variant, "decode");
      expect_right(many, rows, got);
      EXPECT_TRUE(std::equal(want.lse.begin(), want.lse.end(), got.lse.begin()));
      EXPECT_TRUE(
          std::equal(want.output_bytes.begin(), want.output_bytes.end(), got.output_bytes.begin()));
    }
  }
}

TEST(Attention, AcceptsEmptyBatches) {
  const AttentionShape s = shape_of(DType::kF16, 64);
  Server server(s, 4);
  Request a{.seed = 14}, b{.seed = 15};
  EXPECT_TRUE(server.step({{&a, 0, 0}}).lse.empty());
  const std::vector<StepRow> rows = {{&a, 0, 0}, {&b, 0, 2}, {&a, 0, 0}};  // queries, no slots
  serve(server, rows);
}

TEST(Attention, GivesARequestTheSameBitsInEveryCompany) {
  const AttentionShape s = shape_of(DType::kF16, 64);
  Server server(s, 64);
  Request alone{.seed = 16}, joined{.seed = 16}, other{.seed = 17}, third{.seed = 18};
  for (int32_t append : {45, 1, 3, 300, 1}) {
    const StepResult want = server.step({{&alone, append, append}});
    const StepResult got =
        server.step({{&other, 20, 20}, {&joined, append, append}, {&third, 1, 1}});
    const size_t skip = 20 * s.query_heads;
    EXPECT_TRUE(std::equal(want.lse.begin(), want.lse.end(), got.lse.begin() + skip));
    EXPECT_TRUE(std::equal(want.output_bytes.begin(), want.output_bytes.end(),
                           got.output_bytes.begin() + skip * s.head_dim * dtype_bytes(s.dtype)));
  }
}

TEST(Attention, ReferenceGivesTheSameBitsForEveryChunking) {
  const AttentionShape s = shape_of(DType::kBF16, 128);
  Server server(s, 64);
  Request whole{.seed = 19}, chunked{.seed = 19};
  const StepResult want = server.step({{&whole, 50, 50}}, {.variant = "reference"});
  StepResult got;
  for (int32_t chunk : {7, 1, 30, 1, 11}) {
    const StepResult part = server.step({{&chunked, chunk, chunk}}, {.variant = "reference"});
    got.lse.insert(got.lse.end(), part.lse.begin(), part.lse.end());
    got.output.insert(got.output.end(), part.output.begin(), part.output.end());
  }
  EXPECT_EQ(want.lse, got.lse);
  EXPECT_EQ(want.output, got.output);
}

TEST(Attention, RunsTheVariantThatIsAskedFor) {
  const AttentionShape s = shape_of(DType::kF16, 64);
  Server server(s, 32);
  Request a{.seed = 20}, b{.seed = 21};
  EXPECT_EQ(server.step({{&a, 9, 9}, {&b, 70, 1}}).variant, "mixed");
  EXPECT_EQ(server.step({{&a, 2, 2}, {&b, 70, 9}}).variant, "prefill");
  EXPECT_EQ(server.step({{&a, 1, 1}, {&b, 1, 1}}).variant, "decode");
  const std::vector<StepRow> rows = {{&a, 1, 1}, {&b, 1, 1}};
  const StepResult reference = server.step(rows, {.variant = "reference"});
  EXPECT_EQ(reference.variant, "reference");
  expect_right(server, rows, reference);
}

}  // namespace
}  // namespace kvattn
