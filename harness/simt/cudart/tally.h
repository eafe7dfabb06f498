// Purpose: how many kernels this process launched, kept where whoever started it can read it even
// when the process ends by a signal or without its exit handlers.
// Contract: nothing before keep_at(); then the file PATH.PID.tally, made with the first launch,
// holds {"issued": n, "executed": n, "ended": 0 or 1} after every call. A child that was forked
// counts for itself. What cannot be written is not.
#pragma once

#include <cstdint>
#include <string>

namespace kv::simt::cudart {

class Tally {
 public:
  void keep_at(std::string path) { path_ = std::move(path); }
  void issued();
  void executed();
  /// The process ends as it should.
  void end();

 private:
  void write();

  std::string path_;
  int file_ = -1, process_ = 0;
  uint64_t issued_ = 0, executed_ = 0;
  bool ended_ = false;
};

}  // namespace kv::simt::cudart
