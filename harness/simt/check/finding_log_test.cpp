#include "harness/simt/check/finding_log.h"

#include <gtest/gtest.h>

namespace kv::simt {
namespace {

kv_simt_finding of_kind(uint32_t kind, const char* message = "") {
  kv_simt_finding finding = {};
  finding.kind = kind;
  copy_text(finding.message, message);
  return finding;
}

TEST(FindingLog, OneSiteIsKeptOnceAndItsRepeatsAreCounted) {
  FindingLog log;
  EXPECT_FALSE(log.repeat(KV_SIMT_KIND_RACE, 7));
  log.add(of_kind(KV_SIMT_KIND_RACE), 7);
  EXPECT_TRUE(log.repeat(KV_SIMT_KIND_RACE, 7));
  log.add(of_kind(KV_SIMT_KIND_RACE), 7);
  EXPECT_FALSE(log.repeat(KV_SIMT_KIND_RACE, 8)) << "another site";
  EXPECT_FALSE(log.repeat(KV_SIMT_KIND_UNDEFINED, 7)) << "another kind";
  ASSERT_EQ(log.kept().size(), 1u);
  EXPECT_EQ(log.kept()[0].repeats, 2u);
  EXPECT_EQ(log.count(), 1u);
}

// An unrolled loop has many instructions for a line.
TEST(FindingLog, ALineOfAKernelIsOneFinding) {
  FindingLog log;
  kv_simt_finding f = of_kind(KV_SIMT_KIND_RACE);
  copy_text(f.kernel, "attend");
  copy_text(f.source_file, "tile.cuh");
  f.source_line = 7;
  log.add(f, 1);
  log.add(f, 2);
  EXPECT_TRUE(log.repeat(KV_SIMT_KIND_RACE, 2));
  f.source_line = 8;
  log.add(f, 3);
  f.inlined_at_line = 90;
  log.add(f, 4);
  f.kind = KV_SIMT_KIND_UNDEFINED;
  log.add(f, 5);
  EXPECT_EQ(log.count(), 4u);
  ASSERT_EQ(log.kept().size(), 4u);
  EXPECT_EQ(log.kept()[0].repeats, 2u);
}

TEST(FindingLog, HarmlessFindingsDoNotCrowdOutOthers) {
  FindingLog log;
  log.set_max(3);
  for (uint64_t site = 0; site < 10; ++site) log.add(of_kind(KV_SIMT_KIND_RACE_SAME_VALUE), site);
  log.add(of_kind(KV_SIMT_KIND_RACE), 100);
  ASSERT_EQ(log.kept().size(), 4u);
  EXPECT_EQ(log.kept()[3].kind, uint32_t{KV_SIMT_KIND_RACE});
  EXPECT_EQ(log.count(), 11u);
  EXPECT_TRUE(log.repeat(KV_SIMT_KIND_RACE_SAME_VALUE, 9)) << "known, though not kept";
  log.clear();
  EXPECT_EQ(log.count(), 0u);
  log.add(of_kind(KV_SIMT_KIND_RACE_SAME_VALUE), 1);
  EXPECT_EQ(log.kept().size(), 1u);
}

TEST(FindingLog, FindingsOfTheHostAreToldApartByTheirMessage) {
  FindingLog log;
  log.add(of_kind(KV_SIMT_KIND_API, "a"));
  log.add(of_kind(KV_SIMT_KIND_API, "b"));
  log.add(of_kind(KV_SIMT_KIND_API, "a"));
  ASSERT_EQ(log.kept().size(), 2u);
  EXPECT_EQ(log.kept()[0].repeats, 1u);
}

TEST(FindingLog, TextIsCutToFit) {
  char small[4];
  copy_text(small, "abcdef");
  EXPECT_STREQ(small, "abc");
}

}  // namespace
}  // namespace kv::simt
