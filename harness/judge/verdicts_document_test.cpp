// The example of reference/VERDICTS.md is what the judge says today, word for word.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <iterator>

#include "harness/judge/judge_fixture.h"

namespace kv {
namespace {

// Runs of white space as one blank: the document's lines are broken elsewhere.
std::string flattened(const std::string& text) {
  std::string out;
  for (char c : text) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank) out += c;
    if (blank && !out.empty() && out.back() != ' ') out += ' ';
  }
  return out;
}

TEST(VerdictsDocument, ItsExampleIsReal) {
  std::ifstream file(KV_VERDICTS_DOCUMENT);
  const std::string document =
      flattened({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  ASSERT_FALSE(document.empty()) << KV_VERDICTS_DOCUMENT;
  const Verdict v = judge(small_case(), dropped_key());
  EXPECT_NE(document.find(v.message), std::string::npos) << "want: " << v.message;
  ASSERT_TRUE(v.divergence);
  for (const BudgetLine& line : v.divergence->budget) {
    if (line.share < 0.01) continue;
    const std::string want =
        fmt::format("{} {:.2e} {:.1f} %", line.name, line.value, 100 * line.share);
    EXPECT_NE(document.find(want), std::string::npos) << "want: " << want;
  }
}

}  // namespace
}  // namespace kv
