#include "harness/cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include "harness/case/text_file.h"
#include "harness/core/json_fields.h"

namespace kv::cli {

void Output::say(const std::string& text) const {
  const bool taken = json_path_ && json_path_->empty();
  std::FILE* stream = taken ? stderr : stdout;
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

Result<void> Output::finish(const nlohmann::ordered_json& json) const {
  if (!json_path_) return {};
  const std::string text = json_text(json, 2) + "\n";
  if (!json_path_->empty()) return write_text_file(*json_path_, text);
  std::fputs(text.c_str(), stdout);
  return {};
}

Result<void> require_different_files(const std::vector<WrittenFile>& files) {
  std::map<std::filesystem::path, std::string> writers;
  for (const WrittenFile& file : files) {
    if (file.path.empty()) continue;
    std::error_code error;
    const auto whole = std::filesystem::weakly_canonical(file.path, error);
    const auto [other, first] =
        writers.emplace(error ? std::filesystem::path(file.path) : whole, file.option);
    if (!first) {
      return bad_input(file.option + ": expected another file than that of " + other->second +
                       ", got '" + file.path + "' for both");
    }
  }
  return {};
}

Result<void> require_folders(const std::vector<WrittenFile>& files) {
  for (const WrittenFile& file : files) {
    if (file.path.empty()) continue;
    const std::string parent = std::filesystem::path(file.path).parent_path().string();
    const std::string folder = parent.empty() ? "." : parent;
    if (access(folder.c_str(), W_OK | X_OK) == 0) continue;
    return environment_error(file.option + " " + file.path + ": expected a folder '" + folder +
                             "' that can be written, got: " + std::strerror(errno));
  }
  return {};
}

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}
Progress::~Progress() { clear(); }

void Progress::show(const std::string& line) {
  if (!terminal_) return;
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) std::fprintf(stderr, "\r\x1b[K");
  shown_ = false;
}

}  // namespace kv::cli
