#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "harness/case/json.h"
#include "harness/case/limits.h"
#include "harness/case/text_file.h"

namespace kv {
namespace {

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

Error failed(const char* what, const std::string& path) {
  return environment_error(fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno)));
}

Result<void> write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write", path);
    text.remove_prefix(static_cast<size_t>(written));
  }
  if (fsync(fd) != 0) return failed("sync", path);
  return {};
}

Result<void> write_new_file(const std::string& path, std::string_view text) {
  const Descriptor file{open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (file.fd < 0) return failed("create", path);
  return write_all(file.fd, text, path);
}

// The rename itself must reach the disk.
void sync_directory(const std::filesystem::path& directory) {
  const Descriptor opened{open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (opened.fd >= 0) fsync(opened.fd);
}

}  // namespace

Result<Case> load_case(const std::string& path) {
  KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, limits::kFileBytesMax));
  return parse_case(text, path);
}

Result<void> save_case(const std::string& path, const Case& c) {
  const std::filesystem::path target(path);
  const std::filesystem::path directory =
      target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
  const std::string temporary =
      (directory / fmt::format(".{}.{}.tmp", target.filename().string(), getpid())).string();
  Result<void> written = write_new_file(temporary, case_to_json(c));
  if (written.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    written = failed("rename to", path);
  }
  if (!written.ok()) {
    unlink(temporary.c_str());
    return written;
  }
  sync_directory(directory);
  return {};
}

}  // namespace kv
