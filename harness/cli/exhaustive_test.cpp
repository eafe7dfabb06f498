// `kverify check --exhaustive` as a shell sees it, and its shares.
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "harness/cli/case_source.h"
#include "harness/cli/testing/cli_fixture.h"
#include "harness/gen/small_cases.h"

namespace kv::cli {
namespace {

TEST(CaseSource, SharesOfTheSmallCasesAreAllOfThem) {
  const auto counts = count_small_cases();
  std::set<std::string> names;
  uint64_t drawn = 0;
  for (uint64_t shard = 0; shard < 3; ++shard) {
    CaseSource source({.drawn_max = UINT64_MAX, .exhaustive = true, .shard = shard, .shards = 3});
    for (auto next = source.next(); next.value(); next = source.next()) {
      names.insert((*next)->c.name);
      ++drawn;
    }
  }
  EXPECT_EQ(drawn, std::accumulate(counts.begin(), counts.end(), uint64_t{0}));
  EXPECT_EQ(names.size(), drawn);
}

TEST_F(CliTest, ExhaustiveRunsAShareAndPasses) {
  const Ran ran =
      check_with(kHost, "none", {"--exhaustive", "--shard", "2/100", "--cases", "25", "--json"});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["exhaustive"]["due"], 25);
  EXPECT_EQ(json["summary"]["cases"], 25);
  EXPECT_SAYS(ran.err, "share 2 of 100, 25 cases");
  const Ran wrong = check_with(
      kMisbehaving, "wrong_value",
      {"--exhaustive", "--shard", "1/100", "--cases", "5", "--first", "--minimize-attempts", "0"});
  EXPECT_EQ(wrong.status, 1) << wrong.out << wrong.err;
}

TEST_F(CliTest, BadSharesAreTwo) {
  for (const char* shard : {"0/4", "5/4", "1", "a/b", "1/0", "-1/4", "1/99999999", ""}) {
    EXPECT_EQ(check_with(kHost, "none", {"--exhaustive", "--shard", shard}).status, 2) << shard;
  }
  EXPECT_EQ(check_with(kHost, "none", {"--shard", "1/2"}).status, 2);
}

}  // namespace
}  // namespace kv::cli
