#include "harness/campaign/ledger.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "harness/core/json_fields.h"

namespace kv {
namespace {

Error cannot(const char* what, const std::string& path) {
  return environment_error(std::string("cannot ") + what + " '" + path +
                           "': " + std::strerror(errno));
}

/// The line that another process wrote behind those whose writers were killed within write(), or
/// null. Quotes within strings are escaped: what is found begins a line, and only the last is
/// whole.
nlohmann::json behind_torn(const std::string& line) {
  const size_t start = line.rfind("{\"event\"");
  return start == line.npos || start == 0
             ? nlohmann::json()
             : nlohmann::json::parse(line.substr(start), nullptr, false);
}

}  // namespace

Result<Ledger> Ledger::open(const std::string& path) {
  Ledger ledger;
  ledger.path_ = path;
  ledger.file_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (ledger.file_ < 0) return cannot("open", path);
  return ledger;
}

Ledger::Ledger(Ledger&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}
Ledger& Ledger::operator=(Ledger&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  return *this;
}
Ledger::~Ledger() {
  if (file_ >= 0) close(file_);
}

Result<void> Ledger::add(const nlohmann::ordered_json& line) {
  const std::string text = json_text(line) + "\n";
  const ssize_t written = write(file_, text.data(), text.size());
  if (written != static_cast<ssize_t>(text.size())) return cannot("append to", path_);
  return {};
}

Result<uint64_t> mend_ledger(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return uint64_t{0};
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t end = text.rfind('\n') + 1;  // npos + 1: 0
  if (end == text.size()) return uint64_t{0};
  std::filesystem::resize_file(path, end, error);
  if (error) return environment_error("cannot mend '" + path + "': " + error.message());
  return uint64_t{text.size() - end};
}

Result<LedgerLines> read_ledger(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return cannot("read", path);
  LedgerLines all;
  for (std::string line; std::getline(file, line);) {
    nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) {
      ++all.unreadable;
      json = behind_torn(line);
    }
    if (json.is_object()) all.lines.push_back(std::move(json));
  }
  return all;
}

}  // namespace kv
