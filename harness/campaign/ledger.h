// Purpose: the record of a campaign: one JSON object a line, appended by many processes.
// Contract: a line is written by one write() to a file opened for appending, so lines of different
// processes do not mix; a process that is killed may leave a part of one. mend_ledger() cuts off a
// last line without its end and keeps the rest: call it before any writer runs. Every line begins
// with its "event". read_ledger() leaves out what is no JSON object, and counts it; a whole line
// behind torn ones it finds.
// Example: KV_ASSIGN_OR_RETURN(Ledger ledger, Ledger::open(path)); ledger.add({{"event", "done"}});
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/core/result.h"

namespace kv {

class Ledger {
 public:
  static Result<Ledger> open(const std::string& path);
  Ledger(Ledger&& other) noexcept;
  Ledger& operator=(Ledger&& other) noexcept;
  ~Ledger();

  Result<void> add(const nlohmann::ordered_json& line);

 private:
  Ledger() = default;
  std::string path_;
  int file_ = -1;
};

/// Removes an unfinished last line; returns how many bytes that were.
Result<uint64_t> mend_ledger(const std::string& path);

struct LedgerLines {
  std::vector<nlohmann::json> lines;
  uint64_t unreadable = 0;
};
Result<LedgerLines> read_ledger(const std::string& path);

}  // namespace kv
