#include "harness/certify/corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "harness/case/data.h"
#include "harness/case/json.h"
#include "harness/case/timeline.h"
#include "harness/case/validate.h"
#include "harness/core/hash.h"
#include "harness/history/twin.h"
#include "harness/relation/relation.h"

namespace kv {
namespace {

namespace fs = std::filesystem;

std::string content_hash(const Case& c) {
  const std::string text = case_to_json(c);
  return hex64(hash_bytes(std::as_bytes(std::span(text))));
}

bool is_case_file(const fs::path& path) {
  return path.extension() == ".json" && path.stem().extension() != ".trace";
}

/// "device:race" as part of a file name.
std::string file_name(std::string failure_class) {
  std::replace_if(
      failure_class.begin(), failure_class.end(),
      [](char ch) { return !std::isalnum(static_cast<unsigned char>(ch)); }, '-');
  return failure_class;
}

}  // namespace

std::string trace_path(const std::string& case_path) {
  return fs::path(case_path).replace_extension(".trace.json").string();
}

Result<void> make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!error) return {};
  return environment_error("cannot make the folder '" + folder + "': " + error.message() +
                           ". Choose another with --out.");
}

bool is_corpus(const std::string& root) {
  std::error_code missing;
  return fs::is_directory(fs::path(root) / "seeds", missing) ||
         fs::is_directory(fs::path(root) / "regression", missing);
}

Result<std::vector<std::string>> stored_findings(const std::string& folder) {
  fs::path root = folder;
  std::error_code missing;
  const bool is_campaign = fs::exists(root / "campaign.json", missing);
  if (is_campaign || fs::is_directory(root / "crashing", missing)) root /= "crashing";
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(root, missing))
    if (entry.is_regular_file(missing) && is_case_file(entry.path()))
      files.push_back(entry.path().string());
  if (files.empty() && !is_campaign)
    return bad_input(folder + ": expected a folder with cases (*.json), got none");
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> corpus_files(const std::string& root) {
  std::vector<std::string> files;
  for (const char* folder : {"seeds", "regression"}) {
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(fs::path(root) / folder, missing))
      if (is_case_file(entry.path())) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<Case> load_checked_case(const std::string& path) {
  KV_ASSIGN_OR_RETURN(Case c, load_case(path));
  const bool known =
      c.engine ? find_twin(c.exec.relation) != nullptr : find_relation(c.exec.relation) != nullptr;
  if (!c.exec.relation.empty() && !known)
    return bad_input(path + ": exec.relation: expected the name of a relation, got \"" +
                     c.exec.relation + "\"");
  const Result<void> told = c.engine ? check_history(c) : Result<void>();
  if (!told.ok()) return Error{told.error().kind, path + ": " + told.error().message};
  const auto timeline = Timeline::create(c);
  if (!timeline.ok()) {
    if (timeline.error().kind == ErrorKind::kUnsupported) return c;  // a verdict, not an error
    return Error{timeline.error().kind, path + ": " + timeline.error().message};
  }
  if (!c.data.digest && !c.data.tensors_file.empty()) {
    return bad_input(path +
                     ": data.digest: expected the digest of the inputs, as tensors lie in a "
                     "file of their own, got none");
  }
  if (!c.data.digest) return c;
  const uint64_t digest = input_digest(c);
  if (digest == *c.data.digest) return c;
  return bad_input(
      fmt::format("{}: data.digest: expected {}, got {}: the inputs are not those that "
                  "the case was recorded with, so a replay would be another case",
                  path, hex64(*c.data.digest), hex64(digest)));
}

Result<std::vector<Case>> load_preceding(const std::string& path, const Case& c) {
  std::vector<Case> cases;
  for (const std::string& name : c.exec.preceding) {
    KV_ASSIGN_OR_RETURN(Case before,
                        load_checked_case((fs::path(path).parent_path() / name).string()));
    cases.push_back(std::move(before));
  }
  return cases;
}

Result<std::string> store_finding(const std::string& folder, Examined& examined) {
  KV_RETURN_IF_ERROR(make_folder(folder));
  Case& c = examined.c;
  c.exec.preceding.clear();
  if (Timeline::create(c).ok()) c.data.digest = input_digest(c);
  const std::string stem = file_name(examined.verdict.failure_class) + "-" + content_hash(c);
  if (!examined.preceding.empty())
    KV_RETURN_IF_ERROR(make_folder((fs::path(folder) / stem).string()));
  for (size_t i = 0; i < examined.preceding.size(); ++i) {
    const std::string name = fmt::format("{}/{:04}.json", stem, i);
    KV_RETURN_IF_ERROR(save_case((fs::path(folder) / name).string(), examined.preceding[i]));
    c.exec.preceding.push_back(name);
  }
  const std::string path = (fs::path(folder) / (stem + ".json")).string();
  KV_RETURN_IF_ERROR(save_case(path, c));
  return path;
}

}  // namespace kv
