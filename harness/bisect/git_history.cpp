#include "harness/bisect/git_history.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "harness/case/problem.h"

namespace kv {
namespace {

constexpr double kGitSeconds = 600;  // a checkout of a large tree

Error git_failed(const char* what, const CommandEnd& end) {
  if (end.interrupted) return {ErrorKind::kTimeLimit, "interrupted"};
  if (end.status == -1 || end.status == 127) return environment_error("git could not be started");
  return bad_input(fmt::format("{}: git says: {}", what, end.last_line()));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// The identity in "# first bad commit: [ID] subject".
std::string bracketed(const std::string& line) {
  const size_t begin = line.find('['), end = line.find(']');
  return begin == line.npos || end == line.npos ? "" : line.substr(begin + 1, end - begin - 1);
}

}  // namespace

GitHistory::GitHistory(GitHistory&& other) noexcept
    : options_(other.options_),
      opened_(std::exchange(other.opened_, false)),
      current_(std::move(other.current_)),
      found_(std::move(other.found_)) {}

GitHistory::~GitHistory() {
  if (!opened_) return;
  options_.interrupted = nullptr;  // it has to go in any case
  Command remove{
      .words = {"git", "-C", options_.repository, "worktree", "remove", "--force", options_.tree}};
  run_command(remove);
}

// Hooks of the user's are not for trees that nobody works in.
CommandEnd GitHistory::git(std::vector<std::string> words) const {
  words.insert(words.begin(), {"git", "-c", "core.hooksPath=/dev/null", "-c",
                               "advice.detachedHead="
                               "false"});
  return run_command({.words = std::move(words),
                      .folder = opened_ ? options_.tree : options_.repository,
                      .seconds = kGitSeconds,
                      .interrupted = options_.interrupted});
}

Result<GitHistory> GitHistory::open(const HistoryOptions& options) {
  GitHistory history(options);
  std::error_code missing;
  if (!std::filesystem::is_directory(options.repository, missing))
    return bad_input(options.repository + ": expected a folder of a git repository, got none");
  const CommandEnd added =
      history.git({"worktree", "add", "--quiet", "--detach", options.tree, "HEAD"});
  if (!added.ok()) return git_failed(options.repository.c_str(), added);
  history.opened_ = true;
  return history;
}

Result<Commit> GitHistory::find(const std::string& name) const {
  // An option is no commit, whatever git would make of it.
  const CommandEnd shown = git({"log", "-1", "--no-show-signature", "--format=%H%n%s",
                                "--end-of-options", name + "^{commit}", "--"});
  const auto lines = lines_of(shown.output);
  if (!shown.ok() || lines.empty() || lines[0].size() < 40)
    return bad_input(
        fmt::format("expected a commit of {}, got {}", options_.repository, in_quotes(name)));
  CommandEnd subject;
  subject.output = lines.size() > 1 ? lines[1] : "";
  return Commit{lines[0], subject.last_line()};
}

Result<void> GitHistory::check_out(const Commit& commit) {
  const CommandEnd end = git({"checkout", "--quiet", "--force", "--detach", commit.id});
  return end.ok() ? Result<void>() : git_failed("checkout", end);
}

Result<void> GitHistory::start(const Commit& good, const Commit& bad) {
  return read_state(git({"bisect", "start", bad.id, good.id}));
}

Result<void> GitHistory::mark(Mark mark) {
  const char* const word = mark == Mark::kGood ? "good" : mark == Mark::kBad ? "bad" : "skip";
  const CommandEnd reset = git({"reset", "--quiet", "--hard"});  // what a build changed
  if (!reset.ok()) return git_failed("reset", reset);
  return read_state(git({"bisect", word}));
}

/// Its log is the part of what git says that is made for programs.
Result<void> GitHistory::read_state(const CommandEnd& end) {
  constexpr int kOnlySkipped = 2;
  if (!end.ok() && end.status != kOnlySkipped) return git_failed("bisect", end);
  current_.reset();
  found_.clear();
  const CommandEnd log = git({"bisect", "log"});
  if (!log.ok()) return git_failed("bisect", log);
  for (const std::string& line : lines_of(log.output)) {
    const bool names =
        line.starts_with("# first bad commit:") || line.starts_with("# possible first bad commit:");
    if (!names) continue;
    KV_ASSIGN_OR_RETURN(Commit commit, find(bracketed(line)));
    found_.push_back(std::move(commit));
  }
  if (!found_.empty()) return {};
  KV_ASSIGN_OR_RETURN(current_, find("HEAD"));
  return {};
}

}  // namespace kv
