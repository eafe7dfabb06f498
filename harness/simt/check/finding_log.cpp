#include "harness/simt/check/finding_log.h"

namespace kv::simt {
namespace {

struct Fnv1a {
  uint64_t hash = 0xcbf29ce484222325;
  void mix(const char* text) {
    for (; *text; ++text) mix(uint64_t{uint8_t(*text)});
  }
  void mix(uint64_t value) { hash = (hash ^ value) * 0x100000001b3; }
};

uint64_t line_of(const kv_simt_finding& finding) {
  Fnv1a line;
  line.mix(finding.kernel);
  line.mix(finding.source_file);
  line.mix(finding.source_line);
  line.mix(finding.inlined_at_file);
  line.mix(finding.inlined_at_line);
  return line.hash;
}

}  // namespace

bool FindingLog::repeat(uint32_t kind, uint64_t site) {
  const auto found = seen_.find({kind, site});
  if (found == seen_.end()) return false;
  if (found->second != kNotKept) ++kept_[size_t(found->second)].repeats;
  return true;
}

void FindingLog::add(const kv_simt_finding& finding, uint64_t site) {
  if (repeat(finding.kind, site)) return;
  if (finding.source_line == 0) {
    seen_[{finding.kind, site}] = keep(finding);
    return;
  }
  const auto [line, fresh] = lines_.emplace(std::pair(finding.kind, line_of(finding)), kNotKept);
  if (fresh) {
    line->second = keep(finding);
  } else if (line->second != kNotKept) {
    ++kept_[size_t(line->second)].repeats;
  }
  seen_[{finding.kind, site}] = line->second;
}

int64_t FindingLog::keep(const kv_simt_finding& finding) {
  ++count_;
  uint32_t& kept_of_kind = kept_of_kind_[finding.kind];
  if (kept_of_kind == max_) return kNotKept;
  ++kept_of_kind;
  kept_.push_back(finding);
  kept_.back().struct_bytes = sizeof(kv_simt_finding);
  return static_cast<int64_t>(kept_.size()) - 1;
}

void FindingLog::add(const kv_simt_finding& finding) {
  Fnv1a site;
  site.mix(finding.kernel);
  site.mix(finding.instruction);
  if (finding.ptx_line == 0) site.mix(finding.message);
  // The top bit keeps host sites apart from device sites.
  add(finding, (site.hash ^ finding.ptx_line) | uint64_t{1} << 63);
}

void FindingLog::clear() {
  seen_.clear();
  lines_.clear();
  count_ = 0;
  kept_.clear();
  kept_of_kind_.clear();
}

}  // namespace kv::simt
