#include <filesystem>

#include "harness/case/json.h"
#include "harness/case/limits.h"
#include "harness/case/side_car.h"
#include "harness/case/text_file.h"

namespace kv {
namespace {

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

}  // namespace

Result<Case> load_case(const std::string& path) {
  KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, limits::kFileBytesMax));
  KV_ASSIGN_OR_RETURN(Case c, parse_case(text, path));
  const Result<void> attached = attach_side_car(c, folder_of(path));
  if (!attached.ok()) return Error{attached.error().kind, path + ": " + attached.error().message};
  return c;
}

Result<void> save_case(const std::string& path, const Case& c) {
  if (c.data.tensors_file.empty()) return write_text_file(path, case_to_json(c));
  Case stored = c;
  stored.data.tensors_file = relative_side_car(c, folder_of(path));
  return write_text_file(path, case_to_json(stored));
}

}  // namespace kv
