// Bit equality that a plugin promises with KV_PROMISE_CHUNK: a query row's O and LSE are the same
// bits whether its prompt is computed whole, in chunks, token by token or in verify steps, alone or
// in company, on whatever pages, beside whatever poison, under every schedule seed.
// Kills: a decode kernel of another split size, tile or order than prefill (kvattn in throughput
// mode is one: the last test).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "harness/case/timeline.h"
#include "harness/run/case_runner.h"

namespace kv::props {
namespace {

constexpr uint32_t kTokens = 560;  // beyond one split of 512 slots
const RequestId kProbe(0);

using RowBits = std::vector<std::byte>;       // O and LSE of all heads
using Results = std::map<uint64_t, RowBits>;  // by the slot that the row stands at

/// Runs one case in a worker and collects the rows of the probe request.
class Bench {
 public:
  explicit Bench(const char* plugin)
      : folder_(testing::TempDir() + "/invariance-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    RunnerOptions options;
    options.plugin_path = KV_BUILD_DIR "/lib/" + std::string(plugin);
    options.executable = KV_BUILD_DIR "/bin/kverify";
    options.folder = folder_;
    runner_.emplace(CaseRunner::start(options).value());
  }
  ~Bench() { std::filesystem::remove_all(folder_); }

  Results run(const Case& c) {
    EXPECT_TRUE(runner_->submit(c).ok());
    Timeline timeline = Timeline::create(c).value();
    Results results;
    for (;;) {
      const CaseRunner::Event event = runner_->next().value();
      if (const auto* end = std::get_if<RunEnd>(&event)) {
        EXPECT_EQ(end->outcome, RunOutcome::kCompleted) << end->message;
        return results;
      }
      const auto& seen = std::get<OpObservation>(event);
      EXPECT_EQ(seen.status, OpStatus::kOk) << seen.message;
      EXPECT_TRUE(seen.findings.empty()) << seen.findings.front().message;
      collect(c, timeline.apply(seen.op_index), seen, results);
    }
  }

 private:
  static void collect(const Case& c, const PlannedStep& step, const OpObservation& seen,
                      Results& results) {
    const size_t lse = c.shape.query_heads;
    const size_t bytes = lse * c.shape.head_dim_v * dtype_bytes(c.shape.output_dtype);
    uint64_t token = 0;
    for (const PlannedRow& row : step.rows) {
      for (uint32_t q = 0; q < row.queries; ++q, ++token) {
        if (row.request != kProbe || seen.layers.empty()) continue;
        RowBits bits(bytes + lse * sizeof(float));
        std::memcpy(bits.data(), &seen.layers[0].output[token * bytes], bytes);
        std::memcpy(&bits[bytes], &seen.layers[0].lse[token * lse], lse * sizeof(float));
        results[static_cast<uint64_t>(query_slot(row, q))] = std::move(bits);
      }
    }
  }

  std::string folder_;
  std::optional<CaseRunner> runner_;
};

struct Kind {
  DType type;
  uint32_t head_dim;
  DType cache = type;
};

Case probe_case(const Kind& kind) {
  Case c;
  c.shape.query_dtype = c.shape.output_dtype = kind.type;
  c.shape.kv_dtype = kind.cache;
  if (kind.cache != kind.type) c.shape.kv_scale = KvScale::kToken;
  c.shape.query_heads = 2;
  c.shape.head_dim_k = c.shape.head_dim_v = kind.head_dim;
  c.pool = {.page_slots = 16, .page_count = 64, .order = PageOrder::kIdentity};
  c.data.seed = 5;
  c.ops = {op::Admit{.request = kProbe, .prompt_tokens = kTokens}};
  return c;
}

op::StepRow row_of(RequestId request, uint32_t append) {
  return {.request = request, .append = append, .queries = append};
}

/// The probe's tokens in parts of these sizes; with `tree` as verify steps of one branch.
Case in_parts(Case c, const std::vector<uint32_t>& parts, bool tree = false) {
  for (const uint32_t part : parts) {
    op::StepRow row = row_of(kProbe, part);
    for (uint32_t i = 0; tree && i < part; ++i) {
      row.tree_parents.push_back(static_cast<int32_t>(i) - 1);
    }
    c.ops.emplace_back(op::Step{.rows = {row}});
  }
  return c;
}

/// The same parts while two other requests prefill and decode around it.
Case in_company(Case c, const std::vector<uint32_t>& parts) {
  const RequestId before(1), after(2);
  c.ops.emplace_back(op::Admit{.request = before, .prompt_tokens = 100});
  c.ops.emplace_back(op::Admit{.request = after, .prompt_tokens = 9});
  for (const uint32_t part : parts) {
    c.ops.emplace_back(
        op::Step{.rows = {row_of(before, 17), row_of(kProbe, part), row_of(after, 1)}});
  }
  return c;
}

std::vector<uint32_t> decode_from(uint32_t first) {
  std::vector<uint32_t> parts = {first};
  for (uint32_t i = first; i < kTokens; ++i) parts.push_back(1);
  return parts;
}

void expect_equal(const Results& want, const Results& got, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (const auto& [slot, bits] : want) {
    ASSERT_EQ(bits, got.at(slot)) << what << ": the row at slot " << slot << " has other bits";
  }
}

class Invariance : public testing::TestWithParam<Kind> {
 protected:
  Case base() const { return probe_case(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Kinds, Invariance,
                         testing::Values(Kind{DType::kF16, 64}, Kind{DType::kBf16, 128},
                                         Kind{DType::kF16, 72}, Kind{DType::kF32, 64},
                                         Kind{DType::kF16, 128, DType::kE4m3},
                                         Kind{DType::kBf16, 72, DType::kI8}),
                         [](const auto& kind) {
                           return std::string(dtype_name(kind.param.type)) + "_" +
                                  std::string(dtype_name(kind.param.cache)) + "_" +
                                  std::to_string(kind.param.head_dim);
                         });

TEST_P(Invariance, ARowHasTheSameBitsHoweverItIsComputed) {
  Bench bench("libkvattn_invariant_plugin.so");
  const std::vector<uint32_t> whole = {kTokens}, chunks = {7, 1, 100, 1, 410, 41};
  const Results want = bench.run(in_parts(base(), whole));
  ASSERT_EQ(want.size(), kTokens);
  expect_equal(want, bench.run(in_parts(base(), chunks)), "chunks");
  expect_equal(want, bench.run(in_parts(base(), decode_from(540))), "decode");
  expect_equal(want, bench.run(in_parts(base(), {510, 4, 5, 3, 8, 1, 29}, true)), "verify");
  expect_equal(want, bench.run(in_company(base(), {120, 1, 410, 29})), "company");
}

TEST_P(Invariance, PagesPoisonAndSchedulesChangeNothing) {
  Bench bench("libkvattn_invariant_plugin.so");
  const std::vector<uint32_t> parts = {530, 1, 4, 25};
  const Results want = bench.run(in_parts(base(), parts));
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    Case c = in_parts(base(), parts);
    c.exec.schedule_seed = seed;
    c.pool.order = seed % 2 != 0 ? PageOrder::kReversed : PageOrder::kFarApart;
    c.pool.layout = seed % 3 == 0 ? CacheLayout::kHeadSlot : CacheLayout::kSlotHead;
    c.pool.poison = seed % 3 == 0   ? Poison::kNan
                    : seed % 3 == 1 ? Poison::kFiniteHuge
                                    : Poison::kUndefined;
    c.pool.page_slots = seed % 4 == 0 ? 64 : 16;
    expect_equal(want, bench.run(c), "schedule seed, pages, poison");
  }
}

// One set of visible keys in every encoding that can express it.
TEST_P(Invariance, EncodingsOfOneMaskGiveTheSameBits) {
  for (const char* plugin : {"libkvattn_plugin.so", "libkvattn_invariant_plugin.so"}) {
    Bench bench(plugin);
    Case c = in_parts(base(), {530, 1, 4, 25});
    c.mask.encoding = MaskEncoding::kBoolKeep;
    const Results want = bench.run(c);
    for (const MaskEncoding encoding :
         {MaskEncoding::kBoolBlock, MaskEncoding::kPackedBits, MaskEncoding::kAdditive}) {
      c.mask.encoding = encoding;
      expect_equal(want, bench.run(c), "encoding");
    }
    for (const DType type : {DType::kF16, DType::kBf16, DType::kF32}) {
      c.mask.additive_dtype = type;
      c.mask.additive_finite_minimum = true;
      expect_equal(want, bench.run(c), "additive mask");
    }
  }
}

// What the checks above are worth: a mode that promises less is told apart.
TEST(InvarianceTwin, ThroughputModeIsFound) {
  Bench bench("libkvattn_plugin.so");
  const Case c = probe_case({DType::kF16, 64});
  EXPECT_NE(bench.run(in_parts(c, {kTokens})), bench.run(in_parts(c, decode_from(540))));
}

}  // namespace
}  // namespace kv::props
