// Purpose: the commits between a good one and a bad one, in the order in which to try them.
// Contract: works in a working tree of its own, which is removed in the end; the user's tree,
// index, branches and hooks are not touched (git keeps an entry under .git/worktrees meanwhile).
// The search is git's own: merges and skipped commits are its business. Files that git does not
// know stay in the working tree from commit to commit, so that a build may be incremental. Example:
//   KV_ASSIGN_OR_RETURN(GitHistory history, GitHistory::open({.repository = ".", .tree = folder}));
//   KV_RETURN_IF_ERROR(history.start(bad, good));
//   while (auto commit = history.current()) KV_RETURN_IF_ERROR(history.mark(try_it(*commit)));
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "harness/bisect/command.h"
#include "harness/core/result.h"

namespace kv {

struct Commit {
  std::string id, subject;  // 40 hexadecimal digits; printable
  std::string short_id() const { return id.substr(0, 12); }
};

enum class Mark { kGood, kBad, kSkip };

struct HistoryOptions {
  std::string repository;
  std::string tree;  // folder for the working tree; must not exist
  const std::atomic<bool>* interrupted = nullptr;
};

class GitHistory {
 public:
  static Result<GitHistory> open(const HistoryOptions& options);
  GitHistory(GitHistory&& other) noexcept;
  GitHistory& operator=(GitHistory&&) = delete;
  ~GitHistory();

  /// What a person calls a commit; bad input when the repository has none of that name.
  Result<Commit> find(const std::string& name) const;
  Result<void> check_out(const Commit& commit);

  Result<void> start(const Commit& good, const Commit& bad);
  /// The commit that is checked out to be tried; nothing when the search has ended.
  const std::optional<Commit>& current() const { return current_; }
  Result<void> mark(Mark mark);
  /// After the end: the first bad commit, or those among which it is, where others were skipped.
  const std::vector<Commit>& found() const { return found_; }
  const std::string& tree() const { return options_.tree; }

 private:
  explicit GitHistory(const HistoryOptions& options) : options_(options) {}
  CommandEnd git(std::vector<std::string> words) const;
  Result<void> read_state(const CommandEnd& end);

  HistoryOptions options_;
  bool opened_ = false;
  std::optional<Commit> current_;
  std::vector<Commit> found_;
};

}  // namespace kv
