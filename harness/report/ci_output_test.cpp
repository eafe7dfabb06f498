#include "harness/report/ci_output.h"

#include <gtest/gtest.h>

#include "harness/simt/control/kv_simt_control.h"

namespace kv {
namespace {

Record race() {
  Record r;
  r.verdict.outcome = Outcome::kFail;
  r.verdict.stage = Stage::kDevice;
  r.verdict.failure_class = "device:race";
  r.verdict.message = "50 % of <x> & \"y\"\nsecond line";
  r.verdict.findings.resize(2);
  r.verdict.findings[0].kind = KV_SIMT_KIND_RACE_SAME_VALUE;  // fails nothing
  r.verdict.findings[0].source_file = "kernels/harmless.cu";
  r.verdict.findings[1].kind = KV_SIMT_KIND_RACE;
  r.verdict.findings[1].source_file = "kernels/a,b.cu";
  r.verdict.findings[1].source_line = 7;
  r.case_path = "corpus/crashing/race.json";
  return r;
}

Record value() {
  Record r;
  r.verdict.outcome = Outcome::kFail;
  r.verdict.failure_class = "output-value";
  r.verdict.message = std::string("bad \x1b byte");
  r.verdict.findings.resize(1);
  r.verdict.findings[0].kind = KV_SIMT_KIND_RACE_SAME_VALUE;
  r.verdict.findings[0].source_file = "kernels/harmless.cu";
  r.case_path = "v.json";
  return r;
}

TEST(CiOutput, JunitEscapesAndCounts) {
  RunSummary summary;
  summary.cases = 5;
  const std::string text = junit_xml(summary, std::vector{race(), value()});
  EXPECT_NE(text.find("tests=\"3\" failures=\"2\""), std::string::npos) << text;
  EXPECT_NE(text.find("50 % of &lt;x&gt; &amp; &quot;y&quot;"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(junit_xml(summary, {}).find("tests=\"1\" failures=\"0\""), std::string::npos);
}

// Fails when a run that says nothing is a green file.
TEST(CiOutput, JunitSaysWhyThereIsNoResult) {
  RunSummary nothing, good;
  EXPECT_EQ(nothing.exit_code(), ExitCode::kVacuous);
  EXPECT_NE(junit_xml(nothing, {}).find("errors=\"1\""), std::string::npos);
  EXPECT_NE(junit_xml(nothing, {}).find("<error type=\"exit 5\" message=\"too little ran"),
            std::string::npos);
  good.cases = 1;
  good.outcomes[Outcome::kPass] = 1;
  EXPECT_EQ(good.exit_code(), ExitCode::kPass);
  EXPECT_NE(junit_xml(good, {}).find("errors=\"0\""), std::string::npos);
  EXPECT_EQ(junit_xml(good, {}).find("<error"), std::string::npos);
}

TEST(CiOutput, SarifPointsAtTheSourceOrTheCase) {
  const auto json = sarif_json(std::vector{race(), value(), value()}, "1");
  const auto& results = json["runs"][0]["results"];
  ASSERT_EQ(results.size(), 3u);
  const auto& at = results[0]["locations"][0]["physicalLocation"];
  EXPECT_EQ(at["artifactLocation"]["uri"], "kernels/a,b.cu");
  EXPECT_EQ(at["region"]["startLine"], 7);
  EXPECT_EQ(results[1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "v.json");
  EXPECT_EQ(json["runs"][0]["tool"]["driver"]["rules"].size(), 2u);
}

TEST(CiOutput, AnAnnotationIsOneLine) {
  EXPECT_EQ(github_annotation(race()),
            "::error file=kernels/a%2Cb.cu,line=7,title=kverify device%3Arace::50 %25 of <x> & "
            "\"y\"%0Asecond line\n");
}

}  // namespace
}  // namespace kv
