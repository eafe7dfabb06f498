#include "harness/case/json.h"
#include "harness/case/limits.h"
#include "harness/case/text_file.h"

namespace kv {

Result<Case> load_case(const std::string& path) {
  KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, limits::kFileBytesMax));
  return parse_case(text, path);
}

Result<void> save_case(const std::string& path, const Case& c) {
  return write_text_file(path, case_to_json(c));
}

}  // namespace kv
