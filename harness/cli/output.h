// Purpose: where the text and the JSON of a command go.
// Contract: text for a person goes to standard output, or to standard error when standard output is
// taken by JSON. A JSON file appears whole or not at all.
// Example: Output out(options.json_path); out.say("..."); return out.finish(json);
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/result.h"

namespace kv::cli {

class Output {
 public:
  /// `json_path`: nothing for no JSON, "" for standard output.
  explicit Output(std::optional<std::string> json_path) : json_path_(std::move(json_path)) {}

  void say(const std::string& text) const;
  Result<void> finish(const nlohmann::ordered_json& json) const;

 private:
  std::optional<std::string> json_path_;
};

/// A file that an option wants written; "" where it was not given.
struct WrittenFile {
  std::string option, path;
};
/// Refuses two options that would write one file: the later would silently replace the earlier.
Result<void> require_different_files(const std::vector<WrittenFile>& files);
/// An error of the environment when a file could not be made in its folder: before hours of work.
Result<void> require_folders(const std::vector<WrittenFile>& files);

/// One line on a terminal that overwrites itself; nothing when standard error is no terminal.
class Progress {
 public:
  Progress();
  ~Progress();
  void show(const std::string& line);
  void clear();

 private:
  bool terminal_ = false;
  bool shown_ = false;
};

}  // namespace kv::cli
