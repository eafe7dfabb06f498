// Wrong values fire at the interval or at the exact stage; their correct twins pass.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/judge/judge_fixture.h"
#include "harness/plugin/kverify_plugin.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv {
namespace {

TEST(Judge, EveryFormatPasses) {
  for (DType type : {DType::kF32, DType::kF16, DType::kBf16}) {
    Case c = small_case();
    c.shape.query_dtype = c.shape.kv_dtype = c.shape.output_dtype = type;
    const Verdict v = judge(c);
    EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  }
}

TEST(Judge, MasksAndModifiersPass) {
  for (Causal causal : {Causal::kNone, Causal::kTopLeft, Causal::kBottomRight}) {
    for (int64_t window : {-1, 0, 3}) {
      Case c = small_case();
      c.mask.causal = causal;
      c.mask.window_left = window;
      c.shape.softcap = window == 3 ? 5.0f : 0.0f;
      const Verdict v = judge(c);
      EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
    }
  }
}

TEST(Judge, DroppedKey) {
  const Verdict v = judge(small_case(), dropped_key());
  EXPECT_FAILS(v, Stage::kInterval, "output-value");
  ASSERT_TRUE(v.divergence);
  const Divergence& d = *v.divergence;
  EXPECT_EQ(d.op_index, 3u);
  EXPECT_EQ(d.request, 0);
  EXPECT_EQ(d.batch_slot, 1);
  EXPECT_EQ(d.layer, 0);
  EXPECT_EQ(d.head, 0);
  EXPECT_EQ(d.query_slot, 11);
  EXPECT_EQ(d.kv_length, 12u);
  EXPECT_EQ(d.block_table.size(), 3u);
  EXPECT_EQ(d.tensor, "output");
  EXPECT_EQ(d.want_bits.size(), 6u);
  EXPECT_EQ(d.slot_digest.size(), 16u);
  EXPECT_EQ(d.cache_bytes_live, 12u * 2 * 2 * (32 + 16) * 2);
  EXPECT_FALSE(d.profile.empty());
  EXPECT_TRUE(d.got < d.admissible_low || d.got > d.admissible_high);
  EXPECT_TRUE(d.want >= d.admissible_low && d.want <= d.admissible_high);
  double share = 0;
  for (const BudgetLine& line : d.budget) share += line.share;
  EXPECT_NEAR(share, 1, 1e-6);
}

TEST(Judge, CausalOffByOne) {
  const FakeFaults faults{
      .visible = [](const PlannedRow& row, uint32_t query, std::vector<uint8_t>& visible) {
        const int64_t next = query_slot(row, query) + 1;
        if (next < static_cast<int64_t>(visible.size())) visible[next] = 1;
      }};
  EXPECT_FAILS(judge(small_case(), faults), Stage::kInterval, "output-value");
}

TEST(Judge, WindowOffByOne) {
  Case c = small_case();
  c.mask.window_left = 3;
  const FakeFaults faults{
      .visible = [](const PlannedRow& row, uint32_t query, std::vector<uint8_t>& visible) {
        const int64_t first = query_slot(row, query) - 3;
        if (first >= 0) visible[first] = 0;
      }};
  EXPECT_FAILS(judge(c, faults), Stage::kInterval, "output-value");
  EXPECT_EQ(judge(c).outcome, Outcome::kPass);
}

TEST(Judge, WrongPageRead) {
  const FakeFaults faults{.read_page = [](const Sequence& sequence, size_t index) {
    return sequence.pages[index == 1 ? 0 : index];
  }};
  EXPECT_FAILS(judge(small_case(), faults), Stage::kInterval, "output-value");
}

TEST(Judge, HeadMapModuloInsteadOfDivided) {
  const FakeFaults faults{.kv_head = [](uint32_t head) { return head % 2; }};
  EXPECT_FAILS(judge(small_case(), faults), Stage::kInterval, "output-value");
}

void scale_lse(Observation& o, double factor) {
  for (OpObservation& op : o.ops) {
    for (LayerResult& layer : op.layers) {
      for (float& x : layer.lse) x = static_cast<float>(x * factor);
    }
  }
}

TEST(Judge, LseInTheOtherBase) {
  const auto faults = at_end([](Observation& o) { scale_lse(o, 1.4426950408889634); });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kInterval, "lse-base");
}

TEST(Judge, LseInTheDeclaredBase2Passes) {
  const auto faults = at_end([](Observation& o) {
    o.plugin.lse_base = KV_LSE_BASE_2;
    scale_lse(o, 1.4426950408889634);
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
}

TEST(Judge, LseOffByALittle) {
  const auto faults = at_end([](Observation& o) { o.ops[2].layers[1].lse[7] += 1e-4f; });
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kInterval, "lse-value");
  EXPECT_EQ(v.divergence->layer, 1);
  EXPECT_EQ(v.divergence->query_slot, 1);
  EXPECT_EQ(v.divergence->head, 3);
}

TEST(Judge, LseNeverWritten) {
  const auto faults =
      at_end([](Observation& o) { o.ops[2].layers[0].lse[0] = std::bit_cast<float>(0xffffffffu); });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kContract, "lse-unwritten");
}

TEST(Judge, LseNotFilledIn) {
  const auto faults = at_end([](Observation& o) { o.ops[2].layers[0].lse[0] = 0; });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kInterval, "lse-value");
}

TEST(Judge, LseMinusInfinityOfARowThatSeesKeys) {
  const auto faults = at_end(
      [](Observation& o) { o.ops[2].layers[0].lse[4] = -std::numeric_limits<float>::infinity(); });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kContract, "lse-inf");
}

TEST(Judge, OneWrongElementAtTheEnd) {
  const auto faults = at_end([](Observation& o) {
    const size_t last = o.ops[3].layers[0].output.size() / 2 - 1;
    uint16_t bits;
    std::memcpy(&bits, &o.ops[3].layers[0].output[last * 2], 2);
    set_output(o, 3, last, bits ^ 0x0100);
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kInterval, "output-value");
  EXPECT_EQ(v.divergence->dimension, 15);
  EXPECT_EQ(v.divergence->head, 3);
}

TEST(Judge, OutputNan) {
  const auto faults = at_end([](Observation& o) { set_output(o, 2, 33, 0x7e00); });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kContract, "output-nan");
}

TEST(Judge, OutputCanaryLeft) {
  const auto faults = at_end([](Observation& o) { set_output(o, 2, 33, 0xffff); });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kContract, "output-unwritten");
}

TEST(Judge, OutputInfinite) {
  const auto faults = at_end([](Observation& o) { set_output(o, 2, 33, 0x7c00); });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kContract, "output-inf");
}

// Exact designs: one ulp beyond the division is too much.
TEST(Judge, ExactDesignIsJudgedExactly) {
  Case c = small_case();
  c.data.design = Design::kUniformExact;
  c.shape.output_dtype = DType::kF32;
  EXPECT_EQ(judge(c).outcome, Outcome::kPass) << judge(c).message;
  const Verdict v = judge(c, dropped_key());
  EXPECT_FAILS(v, Stage::kExact, "output-value");
  const auto nudged = at_end([](Observation& o) {
    auto& layer = o.ops[2].layers[0];
    const size_t last = layer.output.size() / 4 - 1;
    float x;
    for (size_t i = last;; --i) {
      std::memcpy(&x, &layer.output[i * 4], 4);
      if (x == 0) continue;
      x *= 1 + 0x1p-18f;
      std::memcpy(&layer.output[i * 4], &x, 4);
      break;
    }
  });
  EXPECT_FAILS(judge(c, nudged), Stage::kExact, "output-value");
}

// A declared rounding of P pays twenty times the work, so there is a limit to it; a declared order
// alone costs nothing but for the elements that the fast tier does not settle.
FakeFaults declares_order(uint32_t order, bool exact_maximum) {
  return at_end([=](Observation& o) {
    for (OpObservation& op : o.ops) {
      op.profile.order = order;
      op.profile.maximum_is_exact = exact_maximum;
      if (exact_maximum) op.profile.probability_bits = 16;
    }
  });
}

TEST(Judge, DeclaredOrderIsJudgedWhileThereIsWorkLeft) {
  const Verdict none = judge(small_case());
  EXPECT_EQ(none.stats.rows_profile_judged, 0u);
  const FakeFaults ordered = declares_order(KV_ORDER_ASCENDING, false);
  const Verdict all = judge(small_case(), ordered, {.profile_work = 0});
  EXPECT_EQ(all.outcome, Outcome::kPass) << all.message;
  EXPECT_EQ(all.stats.rows_profile_judged, all.stats.rows_judged);
  Case c = small_case();
  c.data.design = Design::kConstantValue;  // whatever P is rounded to, O is V
  const FakeFaults rounded = declares_order(KV_ORDER_ASCENDING, true);
  const Verdict some = judge(c, rounded, {.profile_work = 2000});
  EXPECT_EQ(some.outcome, Outcome::kPass) << some.message;
  EXPECT_GT(some.stats.rows_profile_judged, 0u);
  EXPECT_LT(some.stats.rows_profile_judged, some.stats.rows_judged);
}

// P declared as rounded to bf16 but never rounded: right for anybody, but not what is declared.
TEST(Judge, UndeclaredPrecisionOfPIsFoundUnderTheDeclaredProfile) {
  Case c = small_case();
  c.shape.output_dtype = DType::kF32;
  c.ops[2] = op::Step{.rows = {{.request = RequestId{0}, .append = 11, .queries = 11}}};
  c.ops.pop_back();
  const auto declares_bf16 = [](uint32_t exact) {
    return at_end([exact](Observation& o) {
      DeclaredProfile& p = o.ops[2].profile;
      p.order = KV_ORDER_ASCENDING;
      p.probability_code = kDLBfloat;
      p.probability_bits = 16;
      p.maximum_is_exact = exact;
    });
  };
  const Verdict lax = judge(c, declares_bf16(0));
  EXPECT_EQ(lax.outcome, Outcome::kPass) << lax.message;
  EXPECT_FAILS(judge(c, declares_bf16(1)), Stage::kInterval, "profile-value");
}

}  // namespace
}  // namespace kv
