#include "harness/mutant/planted.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "harness/core/hash.h"

namespace kv {
namespace {

namespace fs = std::filesystem;

struct Field {
  const char* key;
  std::string PlantedBug::*member;
};
constexpr Field kFields[] = {
    {"Class", &PlantedBug::bug_class}, {"Change", &PlantedBug::change},
    {"Origin", &PlantedBug::origin},   {"Found by", &PlantedBug::found_by},
    {"Sources", &PlantedBug::sources}, {"Expect", &PlantedBug::expect},
    {"Level", &PlantedBug::level},     {"Twin", &PlantedBug::twin},
};
constexpr std::string_view kLevels[] = {"kernel", "engine", "engine with attention"};

const Field* field_of(const std::string& line) {
  for (const Field& field : kFields)
    if (line.rfind(std::string(field.key) + ": ", 0) == 0) return &field;
  return nullptr;
}

}  // namespace

Result<PlantedBug> parse_planted(const std::string& name, const std::string& text) {
  PlantedBug bug{.name = name};
  const auto wrong = [&](const std::string& expected) {
    return bad_input(name + ".patch: " + expected);
  };
  std::istringstream lines(text);
  const Field* field = nullptr;
  for (std::string line; std::getline(lines, line) && !line.empty();) {
    const Field* begins = field_of(line);
    if (begins != nullptr) field = begins;
    if (field == nullptr)
      return wrong("expected a header line like 'Class: ...', got '" + line + "'");
    std::string& member = bug.*field->member;
    if (begins != nullptr) line.erase(0, std::string(field->key).size() + 2);
    member += (member.empty() ? "" : " ") + line;
  }
  if (bug.level.empty()) bug.level = "kernel";
  for (const Field& required : kFields)
    if (required.member != &PlantedBug::twin && (bug.*required.member).empty())
      return wrong(std::string("expected a header '") + required.key + ": ...', got none");
  const bool known = bug.expect == "killed" || bug.expect.rfind("equivalent, because ", 0) == 0;
  if (!known)
    return wrong("Expect: expected 'killed' or 'equivalent, because ...', got '" + bug.expect +
                 "'");
  if (std::find(std::begin(kLevels), std::end(kLevels), bug.level) == std::end(kLevels))
    return wrong("Level: expected kernel, engine or engine with attention, got '" + bug.level +
                 "'");
  // A word about a bug changes nothing about it.
  const size_t change = std::min(text.find("\n--- "), text.size());
  Hasher hasher;
  hasher.add_text(text.substr(change));
  bug.hash = hex64(hasher.digest());
  return bug;
}

bool PlantedBug::names(const std::string& check) const {
  const size_t end = is_of_engine() ? found_by.find(':') : found_by.find('.');
  return found_by.substr(0, end).find(check) != std::string::npos;
}

Result<std::vector<PlantedBug>> read_planted(const std::string& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".patch") paths.push_back(entry.path());
  if (error) return bad_input(folder + ": expected a folder of patches: " + error.message());
  std::sort(paths.begin(), paths.end());
  std::vector<PlantedBug> bugs;
  for (const fs::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    KV_ASSIGN_OR_RETURN(PlantedBug bug, parse_planted(path.stem().string(), text));
    bugs.push_back(std::move(bug));
  }
  return bugs;
}

}  // namespace kv
