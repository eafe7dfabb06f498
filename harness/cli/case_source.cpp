#include "harness/cli/case_source.h"

#include <fmt/format.h>

#include "harness/cli/corpus.h"
#include "harness/relation/draw_related.h"

namespace kv::cli {

Result<std::optional<SourcedCase>> CaseSource::next() {
  if (file_ < options_.files.size()) {
    const std::string& path = options_.files[file_++];
    KV_ASSIGN_OR_RETURN(Case c, load_checked_case(path));
    return std::optional(SourcedCase{std::move(c), path});
  }
  while (related_ < options_.files.size()) {
    const size_t number = related_++;
    KV_ASSIGN_OR_RETURN(Case c, load_checked_case(options_.files[number]));
    if (c.exec.relation.empty() && relate(c, options_.seed + number, options_.seed))
      return std::optional(SourcedCase{std::move(c), ""});
  }
  const bool late = options_.deadline && std::chrono::steady_clock::now() >= *options_.deadline;
  if (drawn_ >= options_.drawn_max || late) return std::optional<SourcedCase>{};
  PhiloxSource choices(options_.seed, drawn_);
  Case c = draw_related(choices, options_.drawing);
  c.name = fmt::format("seed {} case {}", options_.seed, drawn_);
  ++drawn_;
  return std::optional(SourcedCase{std::move(c), ""});
}

}  // namespace kv::cli
