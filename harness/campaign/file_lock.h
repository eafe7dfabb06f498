// Purpose: one process at a time in a campaign, and in each of its workers' slots.
// Contract: held until the object or the process ends, however it ends; children do not inherit it.
// Example: KV_ASSIGN_OR_RETURN(const FileLock lock, FileLock::take(path, std::chrono::seconds(0)));
#pragma once

#include <chrono>
#include <string>

#include "harness/core/result.h"

namespace kv {

class FileLock {
 public:
  /// Makes the file; gives up after `wait` with a bad-input error that says who is in the way.
  static Result<FileLock> take(const std::string& path, std::chrono::milliseconds wait);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  FileLock() = default;
  int file_ = -1;
};

}  // namespace kv
