// Purpose: the first thing that is wrong with a case, and where: path, expected, got.
// Contract: walkers push the path as they descend; only the first report is kept, so that a walker
// may go on blindly after it.
// Example:  Problem::At at(problem, "layers"); problem.report("an integer from 1 to 256", "0");
//           problem.error().message == "shape.layers: expected an integer from 1 to 256, got 0"
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case/schema.h"
#include "harness/core/result.h"

namespace kv {

class Problem {
 public:
  /// Adds a step to the path for as long as it lives.
  class At {
   public:
    At(Problem& problem, const char* name) : problem_(problem) {
      problem_.path_.push_back({name, 0});
    }
    At(Problem& problem, size_t index) : problem_(problem) {
      problem_.path_.push_back({nullptr, index});
    }
    ~At() { problem_.path_.pop_back(); }
    At(const At&) = delete;
    At& operator=(const At&) = delete;

   private:
    Problem& problem_;
  };

  bool found() const { return message_.has_value(); }
  void report(std::string_view expected, std::string_view got);
  Error error() const { return bad_input(*message_); }
  std::string path() const;

 private:
  struct Step {
    const char* name;  // nullptr: an index
    size_t index;
  };
  std::vector<Step> path_;
  std::optional<std::string> message_;
};

/// What a rule allows, in words.
std::string describe(const schema::Range<uint64_t>& range);
std::string describe(const schema::Range<int64_t>& range);
std::string describe(const schema::Range<double>& range);
std::string describe(const schema::Text& text);
std::string describe(const schema::List& list);
std::string describe_one_of(std::span<const std::string_view> names);

/// Shortest decimal that reads back as the same double, always with a point or an exponent.
std::string decimal(double value);

/// At most 60 characters of `text`, quoted; bytes other than printable ASCII appear as \xNN, so a
/// hostile file cannot write to the terminal.
std::string in_quotes(std::string_view text);

}  // namespace kv
