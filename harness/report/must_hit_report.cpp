#include "harness/report/must_hit_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace kv {
namespace {

constexpr size_t kColumns = 3;
constexpr size_t kToldMax = 20;

/// What no judged case had and the plugin refused.
std::vector<std::string> only_refused(const RunSummary& s) {
  std::vector<std::string> only = s.must_hit.missing();
  const std::vector<std::string> never = s.never_met();  // of the same order
  std::erase_if(only, [at = never.begin(), end = never.end()](const std::string& name) mutable {
    const bool is_never = at != end && *at == name;
    if (is_never) ++at;
    return is_never;
  });
  return only;
}

}  // namespace

std::string features_table(const FeatureSet& features) {
  std::string out;
  size_t told = 0;
  for (size_t i = 0; i < kFeatureCount; ++i) {
    if (features.count[i] == 0) continue;
    std::string name(feature_name(static_cast<Feature>(i)));
    std::replace(name.begin(), name.end(), '_', ' ');
    const bool starts = told % kColumns == 0, ends = ++told % kColumns == 0;
    if (starts) out += told == 1 ? "  met         " : std::string(14, ' ');
    out += ends ? fmt::format("{} {}\n", name, features.count[i])
                : fmt::format("{:<28}", fmt::format("{} {}", name, features.count[i]));
  }
  if (told % kColumns != 0) out.erase(out.find_last_not_of(' ') + 1) += "\n";
  return out;
}

std::string must_hit_text(const RunSummary& s) {
  std::string out = fmt::format("  must hit    {} of {} conditions and pairs of conditions",
                                s.must_hit.met(), s.must_hit.required());
  const size_t refused = only_refused(s).size();
  out += refused > 0 ? fmt::format("; {} more were refused\n", refused) : "\n";
  if (const auto excused = s.must_hit.excused(); !excused.empty())
    out +=
        fmt::format("  not asked   {}: the plugin does not offer them\n", fmt::join(excused, ", "));
  if (!s.must_hit_is_due) return out;
  const std::vector<std::string> never = s.never_met();
  for (size_t i = 0; i < std::min(never.size(), kToldMax); ++i)
    out += fmt::format("  never met   {}: this campaign says too little\n", never[i]);
  if (never.size() > kToldMax)
    out += fmt::format("  never met   {} others; --json lists them\n", never.size() - kToldMax);
  return out;
}

nlohmann::ordered_json must_hit_json(const RunSummary& s) {
  nlohmann::ordered_json json = {{"required", s.must_hit.required()},
                                 {"met", s.must_hit.met()},
                                 {"is_due", s.must_hit_is_due}};
  for (size_t i = 0; i < conditions().size(); ++i)
    json["conditions"][std::string(feature_name(conditions()[i]))] = s.must_hit.hits(i);
  json["never_met"] = s.never_met();
  json["not_offered"] = s.must_hit.excused();
  json["only_refused"] = only_refused(s);
  return json;
}

}  // namespace kv
