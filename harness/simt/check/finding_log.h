// Purpose: the findings since reset.
// Contract: a finding of a kind at a site (an instruction of a kernel, or one host call's message)
// is kept once; later ones count as its repeats. So do those of other instructions that a kernel
// has for the same source line, where the PTX names lines: an unrolled loop is one finding. Of each
// kind at most `max` distinct ones are kept, so that harmless ones cannot crowd out others; the
// rest is counted.
// Example:  if (!log.repeat(kind, site)) log.add(describe(...), site);
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/simt/control/kv_simt_control.h"

namespace kv::simt {

class FindingLog {
 public:
  void set_max(uint32_t max) { max_ = max; }
  /// Counts a repeat and returns true if (kind, site) is known.
  bool repeat(uint32_t kind, uint64_t site);
  void add(const kv_simt_finding& finding, uint64_t site);
  /// For findings made outside the executor: the site is the place that the finding itself names.
  void add(const kv_simt_finding& finding);
  /// Distinct findings, also those not kept.
  uint64_t count() const { return count_; }
  const std::vector<kv_simt_finding>& kept() const { return kept_; }
  void clear();

 private:
  /// Its index in kept_, or kNotKept.
  int64_t keep(const kv_simt_finding& finding);

  static constexpr int64_t kNotKept = -1;
  std::map<std::pair<uint32_t, uint64_t>, int64_t> seen_;   // to an index in kept_, or kNotKept
  std::map<std::pair<uint32_t, uint64_t>, int64_t> lines_;  // likewise, by source line
  uint64_t count_ = 0;
  std::vector<kv_simt_finding> kept_;
  std::map<uint32_t, uint32_t> kept_of_kind_;
  uint32_t max_ = 64;
};

/// Copies `text` into a fixed array, cut to fit.
template <size_t kBytes>
void copy_text(char (&to)[kBytes], std::string_view text) {
  to[text.copy(to, kBytes - 1)] = 0;
}

}  // namespace kv::simt
