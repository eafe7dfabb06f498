// Purpose: one finding, told to a person and to a program.
// Contract: holds every field of Divergence (judge/verdict.h). The JSON is a pure function of the
// record without `minimized` and `output`, which only the text shows.
// Example: puts(record_text(record).c_str()); json["failures"].push_back(record_json(record));
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/case/case.h"
#include "harness/judge/verdict.h"

namespace kv {

struct Record {
  Case c;
  Verdict verdict;
  bool history = false;   // appears only after the cases of c.exec.preceding
  std::string case_path;  // "" when the case was not written
  std::string replay;     // command line that shows it again
  std::string minimized;  // file of a smaller case of the same fault; text only, like output
  std::string output;     // the last of what the code under test printed
  std::string story;      // lines that tell a history's finding in full; text only
  nlohmann::ordered_json details;  // the same for a program; null: none
};

std::string record_text(const Record& record);
nlohmann::ordered_json record_json(const Record& record);

}  // namespace kv
