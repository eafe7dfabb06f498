#include "harness/judge/fingerprint.h"

#include <algorithm>

#include "harness/case/names.h"
#include "harness/judge/device_stage.h"

namespace kv {
namespace {

const char* property_name(Stage stage) {
  if (stage == Stage::kExact || stage == Stage::kInterval) return "values";
  return stage_name(stage);
}

}  // namespace

const DeviceFinding* deciding_finding(const Verdict& verdict) {
  if (verdict.stage != Stage::kDevice) return nullptr;
  for (const DeviceFinding& f : verdict.findings) {
    if (verdict.failure_class == "device:" + finding_kind_name(f.kind)) return &f;
  }
  return nullptr;
}

std::string kernel_family(const std::string& kernel) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  std::string name = kernel;
  for (size_t at; (at = name.find(kAnonymous)) != std::string::npos;) {
    name.erase(at, kAnonymous.size());
  }
  name = name.substr(0, name.find_first_of("<("));
  return name.substr(name.rfind(' ') + 1);  // npos + 1: no return type
}

std::string Fingerprint::text() const {
  std::string text = property;
  for (const std::string& part : {failure_class, operation, variant, kernel}) {
    if (!part.empty()) text += " " + part;
  }
  return text;
}

bool is_fingerprint_text(const std::string& text) {
  constexpr size_t kBytesMax = 4096;
  const size_t end = text.find(' ');
  if (end == std::string::npos || end + 1 == text.size() || text.size() > kBytesMax) return false;
  if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; })) {
    return false;
  }
  for (int stage = 0; stage <= static_cast<int>(Stage::kMetamorphic); ++stage) {
    if (text.compare(0, end, property_name(static_cast<Stage>(stage))) == 0) return true;
  }
  return false;
}

Fingerprint fingerprint_of(const Case& c, const Verdict& verdict) {
  Fingerprint f;
  f.property = property_name(verdict.stage);
  f.failure_class = verdict.failure_class;
  f.variant = verdict.variant;
  if (const DeviceFinding* found = deciding_finding(verdict))
    f.kernel = kernel_family(found->kernel);
  if (verdict.divergence && verdict.divergence->op_index < c.ops.size()) {
    f.operation = op_name(c.ops[verdict.divergence->op_index]);
  }
  return f;
}

}  // namespace kv
