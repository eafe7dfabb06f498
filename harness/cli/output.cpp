#include "harness/cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace kv::cli {

void Output::say(const std::string& text) const {
  const bool taken = json_path_ && json_path_->empty();
  std::FILE* stream = taken ? stderr : stdout;
  std::fputs(text.c_str(), stream);
  std::fflush(stream);
}

Result<void> Output::finish(const nlohmann::ordered_json& json) const {
  if (!json_path_) return {};
  const std::string text = json.dump(2) + "\n";
  if (json_path_->empty()) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
    return {};
  }
  const std::string temporary = *json_path_ + ".tmp." + std::to_string(getpid());
  std::ofstream file(temporary, std::ios::binary);
  const bool written = static_cast<bool>(file << text << std::flush);
  file.close();
  if (written && std::rename(temporary.c_str(), json_path_->c_str()) == 0) return {};
  const std::string why = std::strerror(errno);
  std::remove(temporary.c_str());
  return environment_error("cannot write '" + *json_path_ + "': " + why);
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
