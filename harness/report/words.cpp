#include "harness/report/words.h"

#include <charconv>
#include <cmath>

namespace kv {

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return "pass";
    case Outcome::kFail:
      return "fail";
    case Outcome::kNondeterministic:
      return "nondeterministic";
    case Outcome::kVacuous:
      return "vacuous";
    case Outcome::kUnsupported:
      return "unsupported";
    case Outcome::kError:
      return "error";
  }
  return "?";
}

const char* space_name(uint32_t space) {
  switch (space) {
    case 1:
      return "global";
    case 2:
      return "shared";
    case 3:
      return "local";
    case 4:
      return "param";
    case 5:
      return "const";
    default:
      return "";
  }
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  char text[40];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {text, end};
}

}  // namespace kv
