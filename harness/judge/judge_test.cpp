// Every fault fires with its own stage and class, and its correct twin passes.
#include "harness/judge/judge.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/judge/fake_worker.h"
#include "harness/plugin/kverify_plugin.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Verdict judge(const Case& c, const FakeFaults& faults = {}, JudgeOptions options = {}) {
  return judge_observation(c, fake_observation(c, faults), options);
}

void expect_fails(const Verdict& v, Stage stage, const std::string& failure_class) {
  EXPECT_EQ(v.outcome, Outcome::kFail) << v.message;
  EXPECT_EQ(v.stage, stage) << v.message;
  EXPECT_EQ(v.failure_class, failure_class) << v.message;
}
#define EXPECT_FAILS(verdict, stage, failure_class) \
  do {                                              \
    SCOPED_TRACE("here");                           \
    expect_fails(verdict, stage, failure_class);    \
  } while (false)

// An observation changed at the end.
FakeFaults at_end(std::function<void(Observation&)> change) {
  return {.finish = std::move(change)};
}

TEST(Judge, ACorrectPluginPasses) {
  const Verdict v = judge(small_case());
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_EQ(v.variant, "fake");
  EXPECT_EQ(v.stats.rows_judged, 2u * 4 * (11 + 6 + 2));  // layers, heads, queries
  EXPECT_EQ(v.stats.elements_judged, v.stats.rows_judged * 17);
  EXPECT_EQ(v.stats.slots_judged, 2u * (11 + 6 + 2));
}

TEST(Judge, AnErrorInsideTheBoundPassesAndIsMeasured) {
  const auto faults = at_end([](Observation& o) {
    float& lse = o.ops[2].layers[1].lse[7];
    lse = std::nextafter(lse, 100.0f);
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_GT(v.stats.error_bound_ratio_max, 0);
  EXPECT_LT(v.stats.error_bound_ratio_max, 1);
}

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

// ---------------------------------------------------------------- values

FakeFaults dropped_key() {
  return {.visible = [](const PlannedRow& row, uint32_t query, std::vector<uint8_t>& visible) {
    if (row.request == RequestId{0} && row.append_slots == 1 && query == 0) visible[5] = 0;
  }};
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

void set_output(Observation& o, size_t op, size_t element, uint16_t bits) {
  std::memcpy(&o.ops[op].layers[0].output[element * 2], &bits, 2);
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

// ---------------------------------------------------------------- empty and PAD rows

Case more_queries_than_slots() {
  Case c = small_case();
  c.ops[2] = op::Step{.rows = {{.request = RequestId{0}, .append = 2, .queries = 5},
                               {.request = RequestId{1}, .append = 6, .queries = 6}}};
  return c;
}

TEST(Judge, EmptyRowsPassAndAreCounted) {
  const Verdict v = judge(more_queries_than_slots());
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_EQ(v.stats.rows_empty, 3u);
}

TEST(Judge, EmptyRowNan) {
  const auto faults = at_end([](Observation& o) { set_output(o, 2, 0, 0x7e00); });
  EXPECT_FAILS(judge(more_queries_than_slots(), faults), Stage::kContract, "empty-row-output");
}

TEST(Judge, EmptyRowLse) {
  const auto plus = at_end([](Observation& o) {
    for (int i = 0; i < 12; ++i) {
      for (auto& layer : o.ops[2].layers) {
        layer.lse[i] = std::numeric_limits<float>::infinity();
      }
    }
  });
  EXPECT_FAILS(judge(more_queries_than_slots(), plus), Stage::kContract, "empty-row-lse");
  const auto declared = at_end([&](Observation& o) {
    plus.finish(o);
    o.plugin.empty_row_lse = KV_EMPTY_LSE_PLUS_INF;
  });
  const Verdict v = judge(more_queries_than_slots(), declared);
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
}

Case padded_case() {
  Case c = small_case();
  c.ops[2] = op::Step{.rows = {{.request = RequestId{0}, .append = 5, .pad_left = 3, .queries = 8},
                               {.request = RequestId{1}, .append = 6, .queries = 6}}};
  c.ops.pop_back();
  return c;
}

// The first three query rows of the step are PAD; each has 4 heads of 16 outputs.
FakeFaults junk_in_pad_rows(uint32_t declared) {
  return at_end([declared](Observation& o) {
    o.plugin.pad_rows = declared;
    for (size_t i = 0; i < 3 * 4 * 16; ++i) set_output(o, 2, i, 0x7e00);
    for (size_t i = 0; i < 3 * 4; ++i) o.ops[2].layers[0].lse[i] = kNan;
  });
}

TEST(Judge, PaddedBatchPasses) {
  const Verdict v = judge(padded_case());
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_EQ(v.stats.rows_pad, 3u);
}

TEST(Judge, PadRowJunkIsToleratedWhenUnspecified) {
  const Verdict v = judge(padded_case(), junk_in_pad_rows(KV_PAD_ROWS_UNSPECIFIED));
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
}

TEST(Judge, PadRowJunkFailsWhenAnythingElseIsDeclared) {
  EXPECT_FAILS(judge(padded_case(), junk_in_pad_rows(KV_PAD_ROWS_ZERO)), Stage::kContract,
               "empty-row-output");
  EXPECT_FAILS(judge(padded_case(), junk_in_pad_rows(KV_PAD_ROWS_UNWRITTEN)), Stage::kContract,
               "pad-row-written");
}

TEST(Judge, PadKeySeen) {
  const FakeFaults faults{
      .visible = [](const PlannedRow& row, uint32_t query, std::vector<uint8_t>& visible) {
        if (row.append_slots == 8 && query == 7) visible[1] = 1;
      }};
  EXPECT_FAILS(judge(padded_case(), faults), Stage::kInterval, "output-value");
}

// ---------------------------------------------------------------- provenance

TEST(Judge, SlotShiftedByOne) {
  const FakeFaults faults{.written_slot = [](const PlannedRow& row, int64_t slot) {
    return row.append_slots == 1 && row.request == RequestId{1} ? slot + 1 : slot;
  }};
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kProvenance, "wrong-slot");
  EXPECT_NE(v.message.find("slot 6 of request 1"), std::string::npos) << v.message;
}

TEST(Judge, OlderSlotOverwritten) {
  const FakeFaults faults{.written_slot = [](const PlannedRow& row, int64_t slot) {
    return row.append_slots == 1 && row.request == RequestId{0} ? slot - 1 : slot;
  }};
  EXPECT_FAILS(judge(small_case(), faults), Stage::kProvenance, "wrong-slot");
}

TEST(Judge, SlotNotWritten) {
  const FakeFaults faults{.written_slot = [](const PlannedRow& row, int64_t slot) {
    return row.append_slots == 1 ? -1 : slot;
  }};
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kProvenance, "unwritten-slot");
  EXPECT_EQ(v.divergence->tensor, "key cache");
  EXPECT_GE(v.divergence->request, 0);
}

PageImage& image(OpObservation& op, uint32_t layer, bool value, size_t nth) {
  for (PageImage& p : op.pages) {
    if (p.layer == layer && p.value == value && nth-- == 0) return p;
  }
  throw std::runtime_error("no such image");
}

constexpr size_t kKeySlotBytes = 2 * 32 * 2;  // heads, dimensions, bytes

// The decode step writes one slot of each request: both pages get the same new token.
TEST(Judge, ForeignToken) {
  const auto faults = at_end([](Observation& o) {
    PageImage& first = image(o.ops[3], 0, false, 0);
    PageImage& second = image(o.ops[3], 0, false, 1);
    // Request 0's new slot is 11, offset 3 of its page; request 1's is 6, offset 2.
    for (PageImage* p : {&first, &second}) {
      PageImage& other = p == &first ? second : first;
      std::vector<std::byte> token(other.bytes.begin() + 3 * kKeySlotBytes,
                                   other.bytes.begin() + 4 * kKeySlotBytes);
      const bool poison = token[0] == std::byte{0xff} && token[1] == std::byte{0xff};
      if (poison) continue;
      std::memcpy(&p->bytes[2 * kKeySlotBytes], token.data(), kKeySlotBytes);
      return;
    }
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kProvenance, "foreign-slot");
  EXPECT_NE(v.message.find("of request 0"), std::string::npos) << v.message;
}

TEST(Judge, KeyInPlaceOfValue) {
  Case c = small_case();
  c.shape.head_dim_v = 32;
  const auto faults = at_end([](Observation& o) {
    image(o.ops[2], 1, true, 0).bytes = image(o.ops[2], 1, false, 0).bytes;
  });
  const Verdict v = judge(c, faults);
  EXPECT_FAILS(v, Stage::kProvenance, "wrong-slot");
  EXPECT_NE(v.message.find("K of slot"), std::string::npos) << v.message;
  EXPECT_EQ(v.divergence->tensor, "value cache");
}

TEST(Judge, OneDamagedBit) {
  const auto faults =
      at_end([](Observation& o) { image(o.ops[2], 1, false, 1).bytes[5] ^= std::byte{1}; });
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kProvenance, "damaged-slot");
  EXPECT_EQ(v.divergence->dimension, 2);
  EXPECT_EQ(v.divergence->layer, 1);
}

TEST(Judge, StrayWriteToAFreePage) {
  const auto faults = at_end([](Observation& o) {
    PageImage stray = o.ops[2].pages.front();
    for (uint32_t page = 0; page < 32; ++page) {
      bool used = false;
      for (const PageImage& p : o.ops[2].pages) used = used || p.page.value == page;
      if (!used) stray.page = PageId{page};
    }
    std::fill(stray.bytes.begin(), stray.bytes.end(), std::byte{0xff});
    stray.bytes[40] = std::byte{0};
    o.ops[2].pages.push_back(stray);
  });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kProvenance, "stray-write");
}

TEST(Judge, StrayWriteByAnOperationThatWritesNothing) {
  const auto faults = at_end([](Observation& o) {
    PageImage stray = o.ops[2].pages.front();
    o.ops[0].pages.push_back(stray);
  });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kProvenance, "stray-write");
}

TEST(Judge, RecycledPagesMayHoldOldBytes) {
  Case c = small_case();
  c.ops.push_back(op::Finish{.request = RequestId{0}});
  c.ops.push_back(op::Admit{.request = RequestId{2}, .prompt_tokens = 3});
  c.ops.push_back(op::Step{.rows = {{.request = RequestId{2}, .append = 3, .queries = 3}}});
  const Verdict v = judge(c);
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
}

// ---------------------------------------------------------------- contract and device

TEST(Judge, Trespass) {
  const auto faults = at_end([](Observation& o) {
    o.ops[2].trespasses.push_back(
        {.tensor = "query", .offset_bytes = 12, .bytes_changed = 1, .want = 3, .got = 4});
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kContract, "trespass");
  EXPECT_EQ(v.divergence->tensor, "query");
}

TEST(Judge, LawfulOperationRefused) {
  const auto faults = at_end([](Observation& o) {
    o.ops[2].status = OpStatus::kRefused;
    o.ops[2].message = "no";
    o.ops[2].layers.clear();
    o.ops.resize(3);
  });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kContract, "refused");
}

TEST(Judge, UnsupportedIsNeitherPassNorFailure) {
  const auto op = at_end([](Observation& o) {
    o.ops[2].status = OpStatus::kUnsupported;
    o.ops.resize(3);
  });
  EXPECT_EQ(judge(small_case(), op).outcome, Outcome::kUnsupported);
  const auto end = at_end([](Observation& o) {
    o.ops.clear();
    o.end = {.outcome = RunOutcome::kUnsupported, .message = "head_dim"};
  });
  EXPECT_EQ(judge(small_case(), end).outcome, Outcome::kUnsupported);
}

DeviceFinding finding(uint32_t kind) {
  DeviceFinding f;
  f.kind = kind;
  f.kernel = "attend";
  f.message = "two threads wrote 4 bytes";
  return f;
}

TEST(Judge, DeviceFindingComesBeforeAnythingElse) {
  const auto faults = at_end([](Observation& o) {
    set_output(o, 2, 0, 0x7e00);
    o.ops[2].findings.push_back(finding(KV_SIMT_KIND_RACE));
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kDevice, "device:race");
  EXPECT_EQ(v.findings.size(), 1u);
}

TEST(Judge, SameValueRacesAndLeaksAreReportedApart) {
  const auto faults = at_end([](Observation& o) {
    o.ops[2].findings.push_back(finding(KV_SIMT_KIND_RACE_SAME_VALUE));
    o.end.findings.push_back(finding(KV_SIMT_KIND_LEAK));
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
  EXPECT_EQ(v.findings.size(), 2u);
  EXPECT_FAILS(judge(small_case(), faults, {.leaks_fail = true}), Stage::kDevice, "device:leak");
}

TEST(Judge, UnknownInstructionIsUnsupported) {
  const auto faults = at_end(
      [](Observation& o) { o.ops[2].findings.push_back(finding(KV_SIMT_KIND_UNSUPPORTED)); });
  EXPECT_EQ(judge(small_case(), faults).outcome, Outcome::kUnsupported);
}

TEST(Judge, WorkerEnds) {
  const auto ends = [](RunOutcome outcome) {
    return at_end([outcome](Observation& o) {
      o.ops.resize(2);
      o.end = {.outcome = outcome, .message = "SIGSEGV", .op_index = 2};
    });
  };
  EXPECT_FAILS(judge(small_case(), ends(RunOutcome::kCrashed)), Stage::kDevice, "crash");
  EXPECT_FAILS(judge(small_case(), ends(RunOutcome::kHung)), Stage::kDevice, "hang");
  EXPECT_FAILS(judge(small_case(), ends(RunOutcome::kMemory)), Stage::kDevice, "memory");
  EXPECT_EQ(judge(small_case(), ends(RunOutcome::kEnvironment)).outcome, Outcome::kError);
  EXPECT_EQ(judge(small_case(), ends(RunOutcome::kCompleted)).outcome, Outcome::kError);
}

TEST(Judge, RepeatsThatDifferAreAFailureOnlyWherePromised) {
  const auto differs = [](uint32_t promises) {
    return at_end([promises](Observation& o) {
      o.plugin.promises = promises;
      o.ops[2].repeat_differences.push_back({.repeat = 1, .elements_changed = 2});
    });
  };
  EXPECT_EQ(judge(small_case(), differs(0)).outcome, Outcome::kPass);
  EXPECT_EQ(judge(small_case(), differs(KV_PROMISE_DETERMINISTIC)).outcome,
            Outcome::kNondeterministic);
}

// ---------------------------------------------------------------- hostile observations

TEST(Judge, MalformedObservationsAreErrors) {
  const std::vector<std::function<void(Observation&)>> changes = {
      [](Observation& o) { o.ops[2].layers.pop_back(); },
      [](Observation& o) { o.ops[2].layers[0].output.pop_back(); },
      [](Observation& o) { o.ops[2].layers[0].lse.clear(); },
      [](Observation& o) { o.ops[2].layers[1].layer = 77; },
      [](Observation& o) { o.ops[2].pages[0].bytes.pop_back(); },
      [](Observation& o) { o.ops[2].pages[0].page = PageId{1u << 30}; },
      [](Observation& o) { o.ops[2].pages[0].layer = 1u << 30; },
      [](Observation& o) { o.ops[2].op_index = 9; },
      [](Observation& o) { o.ops.push_back(o.ops[3]); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    EXPECT_EQ(judge(small_case(), at_end(changes[i])).outcome, Outcome::kError) << i;
  }
}

TEST(Judge, InvalidCaseIsAnError) {
  Case c = small_case();
  const Observation o = fake_observation(c);
  c.ops[2] = op::Step{.rows = {{.request = RequestId{9}, .append = 1, .queries = 1}}};
  EXPECT_EQ(judge_observation(c, o).outcome, Outcome::kError);
  EXPECT_EQ(judge(small_case(), {}, {.arithmetic = "z80"}).outcome, Outcome::kError);
}

// ---------------------------------------------------------------- options

TEST(Judge, SamplingLeavesRowsOutAndSaysSo) {
  const Verdict all = judge(small_case());
  const Verdict some = judge(small_case(), {}, {.sample_rows = 0.5});
  EXPECT_EQ(some.outcome, Outcome::kPass);
  EXPECT_GT(some.stats.rows_left_out, 0u);
  EXPECT_LT(some.stats.rows_judged, all.stats.rows_judged);
  EXPECT_EQ(some.stats.rows_judged + some.stats.rows_left_out, all.stats.rows_judged);
  EXPECT_EQ(some.stats.slots_judged, all.stats.slots_judged);
}

TEST(Judge, StopsAtTheFirstFailure) {
  const Case c = small_case();
  const Observation o =
      fake_observation(c, at_end([](Observation& x) { set_output(x, 2, 0, 0x7e00); }));
  Judge judge(c, {});
  judge.begin(o.plugin);
  judge.add(o.ops[0]);
  judge.add(o.ops[1]);
  EXPECT_FALSE(judge.decided());
  judge.add(o.ops[2]);
  EXPECT_TRUE(judge.decided());
  EXPECT_EQ(judge.finish({}).failure_class, "output-nan");
}

TEST(Judge, VacuousIsNotAPass) {
  Case c = small_case();
  c.shape.scale = 1e5f;
  const Verdict v = judge(c);
  EXPECT_EQ(v.outcome, Outcome::kVacuous) << v.message;
  Case nothing;
  nothing.ops.push_back(op::Admit{.request = RequestId{0}, .prompt_tokens = 1});
  EXPECT_EQ(judge(nothing).outcome, Outcome::kVacuous);
}

}  // namespace
}  // namespace kv
