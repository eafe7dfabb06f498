// What README.md says of the program is what the program offers: each option that the table of
// commands names is one of that command, and the exit codes are those that --help lists.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "harness/cli/testing/program.h"

namespace kv::cli {
namespace {

std::string readme() {
  std::ostringstream text;
  text << std::ifstream(KV_SOURCE_DIR "/README.md").rdbuf();
  return text.str();
}

std::vector<std::string> all_matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

struct Row {
  std::vector<std::string> command;  // "trace", "run"
  std::string text;
};

std::vector<Row> commands() {
  std::vector<Row> rows;
  std::istringstream lines(readme());
  const std::regex row("^\\| `kverify ((?:[a-z]+ ?)+)(.*)$");
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    std::istringstream words(match[1]);
    Row found{.command = {}, .text = line};
    for (std::string word; words >> word;) found.command.push_back(word);
    rows.push_back(std::move(found));
  }
  return rows;
}

TEST(Readme, NamesOnlyCommandsAndOptionsThatThereAre) {
  const std::vector<Row> rows = commands();
  ASSERT_GT(rows.size(), 15u);
  for (const Row& row : rows) {
    std::vector<std::string> arguments = row.command;
    arguments.push_back("--help");
    const Ran help = run_kverify(arguments);
    EXPECT_EQ(help.status, 0) << row.text;
    for (const std::string& option : all_matches(row.text, "(--[a-z][a-z-]*)")) {
      EXPECT_NE(help.out.find(option), std::string::npos) << option << " of " << row.text;
    }
  }
}

TEST(Readme, ListsTheExitCodesOfTheProgram) {
  const std::string help = run_kverify({"--help"}).out;
  const std::vector<std::string> codes = all_matches(readme(), "\n\\| ([0-9]+) \\|");
  ASSERT_EQ(codes.size(), 9u);
  for (const std::string& code : codes) {
    EXPECT_TRUE(std::regex_search(help, std::regex("[ ,\\n]" + code + " [a-z]"))) << code;
  }
}

}  // namespace
}  // namespace kv::cli
