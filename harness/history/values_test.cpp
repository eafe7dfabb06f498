// The engine that attends by the definition is left in peace; each of its faults leaves every byte
// of the cache right and is found by values alone.
#include "harness/history/values.h"

#include <gtest/gtest.h>

#include <cmath>

#include "harness/gen/draw_history.h"
#include "harness/history/judge.h"
#include "harness/history/testing/plain_engine.h"

namespace kv {
namespace {

enum class Wrong : uint8_t { kNothing, kNewestKey, kScale, kOtherRow, kUnwritten, kMissing };

/// The plain engine, with attention in double over the slots that it holds.
class AttendingEngine final : public Engine {
 public:
  AttendingEngine(const Case& c, Wrong wrong)
      : case_(c), wrong_(wrong), content_(c), plain_(c, Fault::kNone) {}

  Answer perform(const Call& call) override {
    Answer answer = plain_.perform(call);
    const auto* step = std::get_if<call::Step>(&call);
    if (step != nullptr && step->wants_outputs && answer.status == CallStatus::kOk) {
      attend(*step, answer.step);
    }
    return answer;
  }
  Result<EngineState> snapshot(CacheKind cache) override { return plain_.snapshot(cache); }
  std::vector<SlotBytes> read(CacheKind cache, std::span<const SlotPlace> places) override {
    return plain_.read(cache, places);
  }
  std::vector<std::vector<std::byte>> take_outputs(uint64_t step) override {
    return std::exchange(outputs_[step], {});
  }

 private:
  void attend(const call::Step& step, uint64_t number) {
    auto& layers = outputs_[number];
    uint32_t layer = 0;
    std::vector<CacheGroup> groups = cache_groups(case_);
    if (step.draft) groups = {{.layers = case_.engine->draft_layers}};
    for (const CacheGroup& group : groups) {
      for (uint32_t l = 0; l < group.layers; ++l, ++layer) {
        layers.emplace_back();
        std::vector<const call::StepRow*> rows;
        for (const call::StepRow& row : step.rows) rows.push_back(&row);
        if (wrong_ == Wrong::kOtherRow) std::reverse(rows.begin(), rows.end());
        for (const call::StepRow* row : rows) {
          for (uint32_t q = 0; q < row->queries; ++q) {
            attend_row(*row, q, {layer, step.draft}, group.window_left, layers.back());
          }
        }
      }
    }
    if (wrong_ == Wrong::kUnwritten) layers.back().back() = std::byte{0xFF};
    if (wrong_ == Wrong::kUnwritten) *(layers.back().end() - 2) = std::byte{0xFF};
    if (wrong_ == Wrong::kMissing) layers.pop_back();
  }

  void attend_row(const call::StepRow& row, uint32_t q, ContentLayer at, int64_t window,
                  std::vector<std::byte>& out) {
    const Shape& s = case_.shape;
    const int64_t slot = static_cast<int64_t>(row.length + row.append - row.queries + q);
    const int64_t begin = window < 0 ? 0 : std::max<int64_t>(0, slot - window);
    const int64_t end = slot + (wrong_ == Wrong::kNewestKey && slot > begin ? 0 : 1);
    const size_t told = row.histories.size() - row.queries + q;
    std::vector<SlotPlace> places;
    for (int64_t j = begin; j < end; ++j) {
      places.push_back(
          {.holder = row.request.value, .slot = static_cast<uint64_t>(j), .layer = at.layer});
    }
    const auto cache = at.draft ? CacheKind::kDraft : CacheKind::kTarget;
    const auto held = plain_.read(cache, places);
    std::vector<std::byte> bytes(content_.query_bytes());
    content_.query({.history = row.histories[told],
                    .previous = row.previous[told],
                    .position = offset(cache, row.request) + slot},
                   at, bytes);
    const uint32_t heads = s.query_heads, dim = s.head_dim_k;
    std::vector<double> query(heads * dim);
    decode_row(s.query_dtype, bytes.data(), query.size(), query.data());
    for (uint32_t h = 0; h < heads; ++h) {
      append_head(held, std::span(query).subspan(h * dim, dim), h * s.kv_heads / heads, out);
    }
  }

  void append_head(const std::vector<SlotBytes>& held, std::span<const double> query,
                   uint32_t kv_head, std::vector<std::byte>& out) const {
    const Shape& s = case_.shape;
    const double scale = s.scale * (wrong_ == Wrong::kScale ? 1.5 : 1);
    std::vector<double> row(s.head_dim_k), weights, sums(s.head_dim_v);
    double total = 0;
    for (const SlotBytes& slot : held) {
      const size_t bytes = slot.key.size() / s.kv_heads;
      decode_row(s.kv_dtype, slot.key.data() + kv_head * bytes, s.head_dim_k, row.data());
      double score = 0;
      for (uint32_t i = 0; i < s.head_dim_k; ++i) score += row[i] * query[i];
      weights.push_back(std::exp(scale * score));
      total += weights.back();
    }
    for (size_t j = 0; j < held.size(); ++j) {
      const size_t bytes = held[j].value.size() / s.kv_heads;
      decode_row(s.kv_dtype, held[j].value.data() + kv_head * bytes, s.head_dim_v, row.data());
      for (uint32_t i = 0; i < s.head_dim_v; ++i) sums[i] += weights[j] / total * row[i];
    }
    const size_t before = out.size();
    out.resize(before + s.head_dim_v * dtype_bytes(s.output_dtype));
    encode_row(s.output_dtype, sums.data(), s.head_dim_v, out.data() + before);
  }

  int64_t offset(CacheKind cache, RequestId request) {
    return plain_.snapshot(cache)->find(request)->position_offset;
  }

  const Case& case_;
  Wrong wrong_;
  Content content_;
  PlainEngine plain_;
  std::map<uint64_t, std::vector<std::vector<std::byte>>> outputs_;
};

HistoryResult run(uint64_t index, Wrong wrong, double fraction) {
  PhiloxSource choices(7, index);
  const Case c = draw_history(choices, {.operations_max = 60, .attends = true});
  AttendingEngine engine(c, wrong);
  return run_history(c, engine, {.value_steps = fraction});
}

TEST(Values, LeaveTheDefinitionInPeace) {
  ValueCounts counts;
  for (uint64_t i = 0; i < 40; ++i) {
    const HistoryResult result = run(i, Wrong::kNothing, 1);
    ASSERT_FALSE(result.finding) << i << ": " << result.finding->message;
    counts += result.stats.values;
  }
  EXPECT_EQ(counts.not_offered, false);
  EXPECT_GT(counts.steps_judged, 100u);
  EXPECT_GT(counts.rows, 1000u);
}

class WrongValues : public testing::TestWithParam<Wrong> {};
TEST_P(WrongValues, AreFoundByValuesAlone) {
  uint64_t found = 0;
  for (uint64_t i = 0; i < 20; ++i) {
    const HistoryResult result = run(i, GetParam(), 1);
    if (!result.finding) continue;
    EXPECT_EQ(result.finding->check, CheckClass::kValues) << result.finding->message;
    ++found;
  }
  EXPECT_GT(found, 3u);
}
INSTANTIATE_TEST_SUITE_P(Values, WrongValues,
                         testing::Values(Wrong::kNewestKey, Wrong::kScale, Wrong::kOtherRow,
                                         Wrong::kUnwritten, Wrong::kMissing));

TEST(Values, TakeASampleOfTheSteps) {
  ValueCounts half, none;
  for (uint64_t i = 0; i < 40; ++i) {
    half += run(i, Wrong::kNothing, 0.5).stats.values;
    none += run(i, Wrong::kScale, 0).stats.values;
  }
  EXPECT_GT(half.steps_judged, half.steps / 4);
  EXPECT_LT(half.steps_judged, half.steps * 3 / 4);
  EXPECT_EQ(none.rows, 0u);
}

TEST(Values, AskAnEngineWithoutAttentionOnce) {
  class Refusing final : public Engine {
   public:
    explicit Refusing(const Case& c) : plain_(c, Fault::kNone) {}
    Answer perform(const Call& call) override {
      const auto* step = std::get_if<call::Step>(&call);
      if (step == nullptr || !step->wants_outputs) return plain_.perform(call);
      ++asked;
      return {.status = CallStatus::kUnsupported, .message = "no attention"};
    }
    Result<EngineState> snapshot(CacheKind cache) override { return plain_.snapshot(cache); }
    std::vector<SlotBytes> read(CacheKind cache, std::span<const SlotPlace> places) override {
      return plain_.read(cache, places);
    }
    int asked = 0;

   private:
    PlainEngine plain_;
  };
  PhiloxSource choices(7, 0);
  const Case c = draw_history(choices, {.attends = true});
  Refusing engine(c);
  const HistoryResult result = run_history(c, engine, {.value_steps = 1});
  EXPECT_FALSE(result.finding);
  EXPECT_EQ(engine.asked, 1);
  EXPECT_TRUE(result.stats.values.not_offered);
}

}  // namespace
}  // namespace kv
