#include "harness/certify/run_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace kv {

Result<RunFolder> RunFolder::create() {
  const char* root = std::getenv("TMPDIR");
  std::string path = std::string(root == nullptr ? "/tmp" : root) + "/kverify-run-XXXXXX";
  if (mkdtemp(path.data()) == nullptr)
    return environment_error("cannot make a folder like '" + path + "': " + std::strerror(errno) +
                             ". Set TMPDIR to a folder that can be written.");
  RunFolder folder;
  folder.path_ = std::move(path);
  return folder;
}

RunFolder& RunFolder::operator=(RunFolder&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace kv
