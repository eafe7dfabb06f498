#include "harness/cli/baseline.h"

#include <fmt/format.h>

#include <sstream>

#include "harness/case/text_file.h"
#include "harness/judge/fingerprint.h"
#include "harness/plugin/text.h"

namespace kv::cli {

Result<std::set<std::string>> read_baseline(const std::string& path) {
  constexpr uint64_t kBytesMax = 1 << 20;
  KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kBytesMax));
  std::set<std::string> faults;
  std::istringstream lines(text);
  uint64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line.front() == '#') continue;
    if (!is_fingerprint_text(line)) {
      return bad_input(
          fmt::format("{}:{}: expected a fingerprint such as 'values output-value step "
                      "decode', got '{}'",
                      path, number, printable(line.substr(0, 60))));
    }
    faults.insert(line);
  }
  return faults;
}

Result<void> write_baseline(const std::string& path, const std::set<std::string>& faults) {
  std::string text = "# Known faults, a fingerprint a line: kverify check --baseline THIS\n";
  for (const std::string& fault : faults) text += fault + "\n";
  return write_text_file(path, text);
}

}  // namespace kv::cli
