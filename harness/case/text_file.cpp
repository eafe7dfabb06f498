#include "harness/case/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

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

// Where a name leads: through symbolic links, so that they stay links.
Result<std::filesystem::path> target_of(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) {
    if (!std::filesystem::exists(status)) {
      return bad_input(
          fmt::format("{}: expected a file or a new name, got a link to nothing", path));
    }
    const auto target = std::filesystem::canonical(path, error);
    if (!error && std::filesystem::is_regular_file(status)) return target;
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return bad_input(
        fmt::format("{}: expected a regular file or a new name, got a {}", path,
                    std::filesystem::is_directory(status) ? "folder" : "device, pipe or socket"));
  }
  return std::filesystem::path(path);
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, uint64_t bytes_max) {
  const auto refuse = [&](std::string_view why) {
    return bad_input(fmt::format("{}: {}", path, why));
  };
  // Looked at before it is opened: to open a pipe would wait for its other end.
  struct stat status = {};
  if (stat(path.c_str(), &status) != 0) return refuse("no such file");
  if (!S_ISREG(status.st_mode)) return refuse("expected a regular file");
  const auto too_long = [&] {
    return refuse(fmt::format("expected at most {} bytes, got more", bytes_max));
  };
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > bytes_max) return too_long();  // before any of it is read
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (file.fd < 0) return refuse(fmt::format("cannot open: {}", std::strerror(errno)));
  // It may have grown since, or not know its size, as those of /proc.
  std::string text(size + 1, 0);
  for (size_t done = 0;;) {
    const ssize_t got = read(file.fd, text.data() + done, text.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse("cannot read");
    done += static_cast<size_t>(got);
    if (done > bytes_max) return too_long();
    if (got > 0 && done == text.size()) text.resize(2 * text.size() + 4096);
    if (got > 0) continue;
    text.resize(done);
    return text;
  }
}

Result<void> write_text_file(const std::string& path, std::string_view text) {
  KV_ASSIGN_OR_RETURN(const std::filesystem::path target, target_of(path));
  const std::filesystem::path directory =
      target.has_parent_path() ? target.parent_path() : std::filesystem::path(".");
  const std::string temporary =
      (directory / fmt::format(".{}.{}.tmp", target.filename().string(), getpid())).string();
  Result<void> written = write_new_file(temporary, text);
  if (written.ok() && std::rename(temporary.c_str(), target.c_str()) != 0) {
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
