#include "harness/simt/profile/lcov.h"

#include <algorithm>

namespace kv::simt::profile {

void LineCoverage::add(const ptx::Module& module, const Executions& executions) {
  for (uint32_t f = 0; f < module.functions.size(); ++f) {
    std::map<std::string_view, Lines> own;
    const std::vector<ptx::Instruction>& code = module.functions[f].code;
    for (uint32_t k = 0; k < code.size(); ++k) {
      const ptx::SourceLine& where = code[k].where;
      if (where.file.empty() || where.line == 0) continue;
      uint64_t& count = own[where.file][where.line];
      count = std::max(count, executions(f, k));
    }
    for (const auto& [file, lines] : own) {
      Lines& all = files_[std::string(file)];
      for (const auto& [line, count] : lines) all[line] += count;
    }
  }
}

std::string LineCoverage::lcov() const {
  std::string text;
  for (const auto& [file, lines] : files_) {
    text += "TN:\nSF:" + file + "\n";
    for (const auto& [line, count] : lines) {
      text += "DA:" + std::to_string(line) + "," + std::to_string(count) + "\n";
    }
    const auto hit =
        std::count_if(lines.begin(), lines.end(), [](const auto& line) { return line.second; });
    text += "LF:" + std::to_string(lines.size()) + "\nLH:" + std::to_string(hit) + "\n";
    text += "end_of_record\n";
  }
  return text;
}

}  // namespace kv::simt::profile
