#include "harness/simt/check/finding_log.h"

namespace kv::simt {

bool FindingLog::repeat(uint32_t kind, uint64_t site) {
  const auto found = seen_.find({kind, site});
  if (found == seen_.end()) return false;
  if (found->second >= 0) ++kept_[size_t(found->second)].repeats;
  return true;
}

void FindingLog::add(const kv_simt_finding& finding, uint64_t site) {
  uint32_t& kept_of_kind = kept_of_kind_[finding.kind];
  const bool keep = kept_of_kind < max_;
  const auto [entry, fresh] =
      seen_.emplace(std::pair(finding.kind, site), keep ? int64_t(kept_.size()) : -1);
  if (!fresh) {
    if (entry->second >= 0) ++kept_[size_t(entry->second)].repeats;
    return;
  }
  if (!keep) return;
  ++kept_of_kind;
  kept_.push_back(finding);
  kept_.back().struct_bytes = sizeof(kv_simt_finding);
}

void FindingLog::add(const kv_simt_finding& finding) {
  // FNV-1a over what names the place. The top bit keeps host sites apart from device sites.
  uint64_t site = 0xcbf29ce484222325;
  const auto mix = [&](const char* text) {
    for (; *text; ++text) site = (site ^ uint8_t(*text)) * 0x100000001b3;
  };
  mix(finding.kernel);
  mix(finding.instruction);
  if (finding.ptx_line == 0) mix(finding.message);
  add(finding, (site ^ finding.ptx_line) | uint64_t{1} << 63);
}

void FindingLog::clear() {
  seen_.clear();
  kept_.clear();
  kept_of_kind_.clear();
}

}  // namespace kv::simt
