// Purpose: a folder for the files of running cases.
// Contract: made in $TMPDIR (default /tmp), removed by the destructor. When kverify itself is
// killed, it stays, and holds the cases that were running, and perhaps some that had just ended.
// Example: KV_ASSIGN_OR_RETURN(const RunFolder folder, RunFolder::create());
#pragma once

#include <string>
#include <utility>

#include "harness/core/result.h"

namespace kv {

class RunFolder {
 public:
  static Result<RunFolder> create();
  RunFolder() = default;
  RunFolder(RunFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  RunFolder& operator=(RunFolder&& other) noexcept;
  ~RunFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace kv
