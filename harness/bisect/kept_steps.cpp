#include "harness/bisect/kept_steps.h"

#include <filesystem>
#include <fstream>

#include "harness/case/json_tree.h"
#include "harness/case/text_file.h"

namespace kv {
namespace {

constexpr uint64_t kBytesMax = 16u << 20;

}  // namespace

Result<KeptSteps> KeptSteps::open(const std::string& path, const std::string& search) {
  KeptSteps kept;
  kept.path_ = path;
  kept.search_ = search;
  std::error_code missing;
  if (path.empty() || !std::filesystem::exists(path, missing)) return kept;
  KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kBytesMax));
  for (size_t begin = 0, line = 1; begin < text.size(); ++line) {
    const size_t end = text.find('\n', begin);
    if (end == text.npos) break;  // of a run that was killed
    const auto json = parse_json(std::string_view(text).substr(begin, end - begin));
    const auto word = [&](const char* key) {
      const bool there = json.ok() && json->is_object() && json->contains(key);
      return there && (*json)[key].is_string() ? (*json)[key].get<std::string>() : std::string();
    };
    if (word("commit").empty() || word("result").empty()) {
      return bad_input(path + ": line " + std::to_string(line) +
                       ": expected the steps of a kverify bisect, got another text");
    }
    if (word("search") == search) kept.results_[word("commit")] = word("result");
    begin = end + 1;
  }
  return kept;
}

std::optional<std::string> KeptSteps::result_of(const std::string& commit) const {
  const auto found = results_.find(commit);
  return found == results_.end() ? std::nullopt : std::optional(found->second);
}

Result<void> KeptSteps::add(const std::string& commit, const std::string& result) {
  results_[commit] = result;
  if (path_.empty()) return {};
  std::string text;
  std::error_code missing;
  if (std::filesystem::exists(path_, missing)) {
    KV_ASSIGN_OR_RETURN(text, read_text_file(path_, kBytesMax));
    text.resize(text.rfind('\n') + 1);
  }
  const Json line = {{"commit", commit}, {"result", result}, {"search", search_}};
  return write_text_file(path_, text + line.dump() + "\n");
}

}  // namespace kv
