#include "harness/run/case_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kv {
namespace {

bool write_whole(int fd, std::string_view text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t written =
        pwrite(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    done += static_cast<size_t>(written);
  }
  return true;
}

}  // namespace

CaseFiles::~CaseFiles() {
  for (size_t i = 0; i < files_.size(); ++i) unlink(path(i).c_str());
}

std::string CaseFiles::path(size_t file) const {
  return folder_ + "/case-" + std::to_string(file) + ".json";
}

Result<size_t> CaseFiles::take() {
  for (size_t i = 0; i < files_.size(); ++i)
    if (!files_[i].taken) return i;
  const size_t next = files_.size();
  File file;
  file.descriptor =
      Descriptor(open(path(next).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (file.descriptor.get() < 0)
    return environment_error("cannot make '" + path(next) + "': " + std::strerror(errno));
  files_.push_back(std::move(file));
  return next;
}

Result<size_t> CaseFiles::put(std::string_view text) {
  KV_ASSIGN_OR_RETURN(const size_t index, take());
  File& file = files_[index];
  const int fd = file.descriptor.get();
  const bool shorter = text.size() < file.bytes;
  if (!write_whole(fd, text) || (shorter && ftruncate(fd, static_cast<off_t>(text.size())) != 0))
    return environment_error("cannot write '" + path(index) + "': " + std::strerror(errno));
  file.bytes = text.size();
  file.taken = true;
  return index;
}

}  // namespace kv
