// Every planted fault is reported, with its kind and at its line, under several schedules; every
// correct twin computes what it should and nothing is reported.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "harness/simt/programs_test/fault_lines.h"
#include "harness/simt/programs_test/program.h"

namespace kv::simt::programs {
namespace {

constexpr uint64_t kSeeds[] = {0, 1, 2, 3};
constexpr uint64_t kInstructionBudget = 200000;  // the largest twin needs a hundredth of it

const kv_simt_control_v1& control() { return *kv_simt_control(1); }

void start(uint64_t seed, uint32_t checks = KV_SIMT_CHECK_ALL) {
  ASSERT_EQ(control().reset(), 0);
  kv_simt_config config = {};
  config.struct_bytes = sizeof config;
  ASSERT_EQ(control().get_config(&config), 0);
  config.checks = checks;
  config.schedule_seed = seed;
  config.instruction_budget = kInstructionBudget;
  ASSERT_EQ(control().configure(&config), 0) << control().last_error();
}

std::vector<kv_simt_finding> run(const Program& program, bool faulty, bool* computed) {
  *computed = program.run(faulty);
  control().synchronize();
  control().check_leaks();
  std::vector<kv_simt_finding> findings(control().finding_kept());
  for (size_t i = 0; i < findings.size(); ++i) {
    findings[i].struct_bytes = sizeof findings[i];
    EXPECT_EQ(control().finding(i, &findings[i]), 0) << control().last_error();
  }
  return findings;
}

bool same_file(const std::string& a, const std::string& b) {
  const auto name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  return name(a) == name(b);
}

std::string show(const std::vector<kv_simt_finding>& findings) {
  std::string text = std::to_string(findings.size()) + " findings\n";
  for (const kv_simt_finding& f : findings) {
    text += "  kind " + std::to_string(f.kind) + " at " + f.source_file + ":" +
            std::to_string(f.source_line) + " inlined at " + f.inlined_at_file + ":" +
            std::to_string(f.inlined_at_line) + " " + f.instruction + ": " + f.message + "\n";
  }
  return text;
}

/// Named in the finding itself or, for code inlined from a header, at the inlining site.
bool names_line(const kv_simt_finding& f, const std::string& file, const FaultLines& fault) {
  if (f.launch == 0) return fault.on_host;
  return (same_file(f.source_file, file) && fault.lines.contains(f.source_line)) ||
         (same_file(f.inlined_at_file, file) && fault.lines.contains(f.inlined_at_line));
}

class Checker : public testing::TestWithParam<Program> {};

TEST_P(Checker, FaultIsReportedAtItsLine) {
  const Program& program = GetParam();
  const FaultLines fault = find_fault_lines(program.file, program.name);
  ASSERT_TRUE(fault.on_host || !fault.lines.empty()) << "no mark in " << program.file;
  for (const uint64_t seed : kSeeds) {
    start(seed);
    bool computed = false;
    const auto findings = run(program, true, &computed);
    const bool reported =
        std::any_of(findings.begin(), findings.end(), [&](const kv_simt_finding& f) {
          return f.kind == program.kind && names_line(f, program.file, fault);
        });
    const bool may_be_missed = program.needs_luck && seed != 0;
    EXPECT_TRUE(reported || may_be_missed) << "schedule seed " << seed << ": expected kind "
                                           << program.kind << ", got " << show(findings);
    // Nothing else may be blamed: consequences show at the marked lines too (a race leads to a read
    // of undefined bytes), and a program that is stopped leaves its memory behind.
    for (const kv_simt_finding& f : findings) {
      EXPECT_TRUE(names_line(f, program.file, fault) || f.kind == KV_SIMT_KIND_LEAK)
          << "schedule seed " << seed << ": " << show({f});
    }
  }
}

TEST_P(Checker, CorrectTwinIsSilent) {
  const Program& program = GetParam();
  for (const uint64_t seed : kSeeds) {
    start(seed);
    bool computed = false;
    const auto findings = run(program, false, &computed);
    EXPECT_TRUE(computed) << "schedule seed " << seed;
    EXPECT_EQ(findings.size(), 0u) << "schedule seed " << seed << ": " << show(findings);
  }
}

std::string bytes_of(const kv_simt_finding& finding) {
  return {reinterpret_cast<const char*>(&finding), sizeof finding};
}

TEST_P(Checker, SameRunSameFindings) {
  const Program& program = GetParam();
  std::vector<kv_simt_finding> runs[2];
  for (auto& findings : runs) {
    start(3);
    bool computed = false;
    findings = run(program, true, &computed);
  }
  ASSERT_EQ(runs[0].size(), runs[1].size()) << show(runs[0]) << show(runs[1]);
  for (size_t i = 0; i < runs[0].size(); ++i) {
    EXPECT_EQ(bytes_of(runs[0][i]), bytes_of(runs[1][i])) << show({runs[0][i], runs[1][i]});
  }
}

/// The check that a kind of finding belongs to; 0 for kinds that are always found.
uint32_t check_of(uint32_t kind) {
  switch (kind) {
    case KV_SIMT_KIND_UNDEFINED:
      return KV_SIMT_CHECK_UNDEFINED;
    case KV_SIMT_KIND_RACE:
      return KV_SIMT_CHECK_RACE;
    case KV_SIMT_KIND_BARRIER:
      return KV_SIMT_CHECK_BARRIER;
    case KV_SIMT_KIND_ASYNC:
      return KV_SIMT_CHECK_ASYNC;
    default:
      return 0;
  }
}

TEST_P(Checker, ACheckThatIsOffFindsNothing) {
  const Program& program = GetParam();
  const uint32_t check = check_of(program.kind);
  start(0, KV_SIMT_CHECK_ALL & ~check);
  bool computed = false;
  const auto findings = run(program, true, &computed);
  const bool reported = std::any_of(findings.begin(), findings.end(),
                                    [&](const auto& f) { return f.kind == program.kind; });
  EXPECT_EQ(reported, check == 0) << show(findings);
}

std::string name_of(const testing::TestParamInfo<Program>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Programs, Checker, testing::ValuesIn(programs()), name_of);

TEST(CheckerSuite, HoldsThirtyProgramsOrMore) { EXPECT_GE(programs().size(), 30u); }

}  // namespace
}  // namespace kv::simt::programs
