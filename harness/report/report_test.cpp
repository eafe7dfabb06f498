#include <gtest/gtest.h>

#include "harness/report/exit_code.h"
#include "harness/report/record.h"
#include "harness/report/summary.h"

namespace kv {
namespace {

Verdict verdict(Outcome outcome, uint64_t rows = 1) {
  Verdict v;
  v.outcome = outcome;
  v.stats.rows_judged = rows;
  return v;
}

Case decode_case() {
  Case c;
  const RequestId r(0);
  c.ops = {op::Admit{.request = r, .prompt_tokens = 3},
           op::Step{.rows = {{.request = r, .append = 3, .queries = 3}}},
           op::Step{.rows = {{.request = r, .append = 1, .queries = 1}}}};
  return c;
}

RunSummary summary_of(std::initializer_list<Outcome> outcomes) {
  RunSummary summary;
  for (const Outcome outcome : outcomes) summary.add(decode_case(), verdict(outcome));
  return summary;
}

TEST(ExitCode, FollowsThePrecedenceOfTheDesign) {
  const ExitCode order[] = {ExitCode::kEnvironment,      ExitCode::kBadInput, ExitCode::kFailed,
                            ExitCode::kNondeterministic, ExitCode::kVacuous,  ExitCode::kTimeLimit,
                            ExitCode::kUnsupported,      ExitCode::kPass};
  for (size_t i = 0; i < std::size(order); ++i) {
    for (size_t j = i; j < std::size(order); ++j) {
      EXPECT_EQ(worst(order[i], order[j]), order[i]);
      EXPECT_EQ(worst(order[j], order[i]), order[i]);
    }
  }
}

TEST(Summary, DecidesTheExitCode) {
  EXPECT_EQ(summary_of({Outcome::kPass, Outcome::kUnsupported}).exit_code(), ExitCode::kPass);
  EXPECT_EQ(summary_of({Outcome::kPass, Outcome::kFail}).exit_code(), ExitCode::kFailed);
  EXPECT_EQ(summary_of({Outcome::kFail, Outcome::kNondeterministic}).exit_code(),
            ExitCode::kFailed);
  EXPECT_EQ(summary_of({Outcome::kPass, Outcome::kNondeterministic}).exit_code(),
            ExitCode::kNondeterministic);
  EXPECT_EQ(summary_of({Outcome::kPass, Outcome::kError, Outcome::kFail}).exit_code(),
            ExitCode::kEnvironment);
  EXPECT_EQ(summary_of({Outcome::kUnsupported}).exit_code(), ExitCode::kUnsupported);
  EXPECT_EQ(summary_of({Outcome::kUnsupported, Outcome::kVacuous}).exit_code(), ExitCode::kVacuous);
}

TEST(Summary, NothingIsNoPass) { EXPECT_EQ(RunSummary().exit_code(), ExitCode::kVacuous); }

// Two hundred cases of one kind never met an empty row: red, not green.
TEST(Summary, TellsBetweenWhichSharesTheRateLies) {
  // Wilson, E. B., Probable inference, 1927: 5 of 500 at 2.576 standard deviations.
  const ShareInterval few = share_interval(5, 500);
  EXPECT_NEAR(few.low, 0.00333, 0.00005);
  EXPECT_NEAR(few.high, 0.02960, 0.0002);
  EXPECT_NEAR(share_interval(0, 100).low, 0, 1e-9);
  EXPECT_NEAR(share_interval(100, 100).high, 1, 1e-9);
  EXPECT_GT(share_interval(0, 100).high, 0.05);
  EXPECT_EQ(share_interval(0, 0).high, 1);
  const RunSummary summary = summary_of({Outcome::kPass, Outcome::kFail});
  EXPECT_NE(summary_text(summary).find("1 of 2 cases failed"), std::string::npos);
}

TEST(Summary, ALargeCampaignMustMeetItsFeatures) {
  RunSummary summary;
  for (uint64_t i = 0; i < RunSummary::kCampaignCases - 1; ++i)
    summary.add(decode_case(), verdict(Outcome::kPass));
  EXPECT_EQ(summary.exit_code(), ExitCode::kPass);
  EXPECT_TRUE(summary.missing_features().empty());
  summary.add(decode_case(), verdict(Outcome::kPass));
  EXPECT_EQ(summary.exit_code(), ExitCode::kVacuous);
  const auto missing = summary.missing_features();
  EXPECT_NE(std::find(missing.begin(), missing.end(), "empty_row"), missing.end());
  EXPECT_EQ(std::find(missing.begin(), missing.end(), "decode"), missing.end());
  EXPECT_NE(summary_text(summary).find("never met"), std::string::npos);
}

TEST(Summary, BoundsWhatAHostilePluginInvents) {
  RunSummary summary;
  for (int i = 0; i < 1000; ++i) {
    Verdict v = verdict(Outcome::kUnsupported);
    v.message = "reason " + std::to_string(i);
    summary.add(decode_case(), v);
  }
  EXPECT_LE(summary.unsupported_reasons.size(), 51u);
  EXPECT_EQ(summary.unsupported_reasons["other"], 950u);
}

Record full_record() {
  Record r;
  r.c = decode_case();
  r.verdict.outcome = Outcome::kFail;
  r.verdict.stage = Stage::kInterval;
  r.verdict.failure_class = "output-value";
  r.verdict.message = "The output is wrong.";
  r.verdict.variant = "warp";
  Divergence d;
  d.op_index = 2;
  d.request = 0;
  d.batch_slot = 0;
  d.layer = 0;
  d.head = 0;
  d.query_slot = 3;
  d.dimension = 5;
  d.tensor = "output";
  d.want = 0.5;
  d.got = std::numeric_limits<double>::infinity();
  d.want_bits = "0x3800";
  d.got_bits = "0x7c00";
  d.admissible_low = 0.25;
  d.admissible_high = 0.75;
  d.bound = 0.25;
  d.budget = {{.name = "P rounding", .value = 0.25, .share = 1}};
  d.block_table = {7, 3};
  d.kv_length = 4;
  r.verdict.divergence = d;
  DeviceFinding f;
  f.kind = 6;
  f.kernel = "attend";
  f.message = "raced";
  f.source_file = "a.cu";
  f.source_line = 12;
  r.verdict.findings = {f};
  r.replay = "kverify replay x.json";
  r.output = "printed by the plugin";
  return r;
}

TEST(Record, TellsAPersonEverything) {
  const std::string text = record_text(full_record());
  for (const char* part :
       {"fail: output-value (stage interval)", "The output is wrong.",
        "operation 2 (step)  request 0  batch slot 0  layer 0  head 0  query slot 3  dimension 5",
        "0.5 (0x3800)", "inf (0x7c00)", "[0.25, 0.75]", "P rounding", "100.0 %", "7 3", "4 slots",
        "race: raced", "a.cu:12", "warp", "schedule seed 0", "kverify replay x.json",
        "printed by the plugin"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
}

TEST(Record, JsonLeavesOutWhatDiffersFromMachineToMachine) {
  const std::string json = record_json(full_record()).dump();
  EXPECT_EQ(json.find("printed by the plugin"), std::string::npos);
  EXPECT_NE(json.find("\"got\":\"inf\""), std::string::npos);
  EXPECT_NE(json.find("\"dimension\":5"), std::string::npos);
  EXPECT_EQ(json, record_json(full_record()).dump());
}

}  // namespace
}  // namespace kv
