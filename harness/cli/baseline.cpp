#include "harness/cli/baseline.h"

#include <sstream>

#include "harness/case/text_file.h"

namespace kv::cli {

Result<std::set<std::string>> read_baseline(const std::string& path) {
  constexpr uint64_t kBytesMax = 1 << 20;
  KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kBytesMax));
  std::set<std::string> faults;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != '#') faults.insert(line);
  }
  return faults;
}

Result<void> write_baseline(const std::string& path, const std::set<std::string>& faults) {
  std::string text = "# Known faults, a fingerprint a line: kverify check --baseline THIS\n";
  for (const std::string& fault : faults) text += fault + "\n";
  return write_text_file(path, text);
}

}  // namespace kv::cli
