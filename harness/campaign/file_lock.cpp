#include "harness/campaign/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

namespace kv {

Result<FileLock> FileLock::take(const std::string& path, std::chrono::milliseconds wait) {
  constexpr std::chrono::milliseconds kStep{10};
  FileLock lock;
  lock.file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock.file_ < 0)
    return environment_error("cannot open '" + path + "': " + std::strerror(errno));
  for (auto waited = std::chrono::milliseconds(0);; waited += kStep) {
    if (flock(lock.file_, LOCK_EX | LOCK_NB) == 0) return lock;
    if (waited >= wait) return bad_input(path + ": another process is at work here");
    std::this_thread::sleep_for(kStep);
  }
}

FileLock::FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(file_, other.file_);
  return *this;
}
FileLock::~FileLock() {
  if (file_ >= 0) close(file_);
}

}  // namespace kv
