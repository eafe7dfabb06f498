// Fails when a question to a ledger gets another answer than the lines give, or when it can write,
// reach a file or run without end.
#include "harness/campaign/ledger_query.h"

#include <gtest/gtest.h>

namespace kv {
namespace {

LedgerLines ledger() {
  LedgerLines all;
  const std::vector<const char*> texts = {
      R"({"event":"case","case":0,"outcome":"pass","variant":"tiled"})",
      R"({"event":"case","case":1,"outcome":"fail","fingerprint":"a","file":"old.json"})",
      R"({"event":"worker_died","worker":1,"case":2,"status":9})",
      R"({"event":"case","case":2,"fingerprint":"b","history":true,"file":"y.json",)"
      R"("outcome":"fail"})",
      R"({"event":"case","case":3,"outcome":"fail","fingerprint":"a","file":"z.json"})",
      R"({"event":"case","case":1,"outcome":"fail","fingerprint":"a","file":"x.json"})",
      R"({"event":"case","case":[],"outcome":{}})",
      R"({"note":"another line"})",
  };
  for (const char* line : texts) all.lines.push_back(nlohmann::json::parse(line));
  return all;
}

nlohmann::ordered_json asked(const std::string& sql) {
  const auto rows = query_ledger(ledger(), sql);
  return rows.ok() ? nlohmann::ordered_json(rows->rows)
                   : nlohmann::ordered_json(rows.error().message);
}

TEST(LedgerQuery, AnswersWhatTheLinesSay) {
  EXPECT_EQ(asked("SELECT count(*) FROM runs").dump(), "[[6]]");
  EXPECT_EQ(asked("SELECT number, line FROM cases WHERE number = 1").dump(), "[[1,6]]");
  EXPECT_EQ(asked("SELECT * FROM faults;").dump(), R"([["a",2,1,"x.json"],["b",1,2,"y.json"]])");
  EXPECT_EQ(asked("SELECT history FROM findings WHERE file = 'y.json'").dump(), "[[1]]");
  EXPECT_EQ(asked("SELECT worker, number, status, set_aside FROM deaths").dump(), "[[1,2,9,null]]");
  EXPECT_EQ(asked("SELECT variant FROM runs WHERE number = 3").dump(), "[[null]]");
  EXPECT_EQ(asked("SELECT 0.5").dump(), "[[0.5]]");
}

// Fails when a number is made an integer that it cannot be.
TEST(LedgerQuery, NumbersBeyondIntegersStayWhatTheyAre) {
  LedgerLines one;
  one.lines.push_back(nlohmann::json::parse(R"({"event":"case","case":1e300,"outcome":0.5})"));
  const auto rows = query_ledger(one, "SELECT number > 1e299, outcome FROM runs");
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  EXPECT_EQ(nlohmann::ordered_json(rows->rows).dump(), R"([[1,"0.5"]])");
}

TEST(LedgerQuery, AsAPersonReadsIt) {
  const auto rows = query_ledger(ledger(), "SELECT outcome, count(*) AS n FROM cases GROUP BY 1");
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  EXPECT_EQ(query_text(*rows), "outcome  n\n-        1\nfail     3\npass     1\n");
}

TEST(LedgerQuery, OnlyReads) {
  for (const char* sql :
       {"DELETE FROM runs", "INSERT INTO runs(line) VALUES(1)", "CREATE TABLE t(x)",
        "ATTACH 'other.db' AS other", "PRAGMA journal_mode", "VACUUM INTO 'copy.db'",
        "SELECT load_extension('x')", "SELECT 1; SELECT 2", "SELECT", "", ";",
        "SELECT * FROM files", "SELECT * FROM runs, sqlite_schema; DROP TABLE runs"}) {
    const auto rows = query_ledger(ledger(), sql);
    ASSERT_FALSE(rows.ok()) << sql;
    EXPECT_EQ(rows.error().kind, ErrorKind::kBadInput) << sql;
    EXPECT_EQ(rows.error().message.rfind("--sql: ", 0), 0u) << rows.error().message;
  }
}

TEST(LedgerQuery, EndsInAnyCase) {
  const std::string endless =
      "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT ";
  EXPECT_NE(asked(endless + "count(*) FROM n").dump().find("less work"), std::string::npos);
  EXPECT_NE(asked(endless + "x FROM n").dump().find("LIMIT"), std::string::npos);
  EXPECT_NE(asked("SELECT randomblob(1000000000)").dump().find("too big"), std::string::npos);
}

}  // namespace
}  // namespace kv
