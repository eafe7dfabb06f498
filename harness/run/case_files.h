// Purpose: the files of running cases, a few that are written again and again: to make and remove
// one costs a file system far more than to write it.
// Contract: put() writes into a file that no case has, and its path stays valid until give_back().
// A file that was given back keeps its text until the next put(). The destructor removes them all.
// Nothing is synced: the text outlives a crash of any process, not of the machine.
// Example: KV_ASSIGN_OR_RETURN(const size_t file, files.put(case_to_json(c)));  files.path(file)
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/result.h"
#include "harness/plugin/spawn.h"

namespace kv {

class CaseFiles {
 public:
  explicit CaseFiles(std::string folder) : folder_(std::move(folder)) {}
  CaseFiles(CaseFiles&&) noexcept = default;
  CaseFiles& operator=(CaseFiles&&) noexcept = default;
  ~CaseFiles();

  Result<size_t> put(std::string_view text);
  void give_back(size_t file) { files_[file].taken = false; }
  std::string path(size_t file) const;

 private:
  struct File {
    Descriptor descriptor;
    size_t bytes = 0;
    bool taken = false;
  };
  Result<size_t> take();

  std::string folder_;
  std::vector<File> files_;
};

}  // namespace kv
