// Purpose: what was concluded about one case.
// Contract: a Verdict of kFail is published only when certified; the first stage that fails
// decides. All fields are pure functions of case, build and device; none of time or machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/core/id.h"
#include "harness/run/observation.h"

namespace kv {

enum class Outcome : uint8_t { kPass, kFail, kNondeterministic, kVacuous, kUnsupported, kError };
enum class Stage : uint8_t {
  kDevice,
  kContract,
  kStructure,
  kProvenance,
  kExact,
  kInterval,
  kMetamorphic,
};
/// "device", "contract", ...
const char* stage_name(Stage stage);

/// One named part of an error bound.
struct BudgetLine {
  std::string name;  // "P rounding", "accumulation", ...
  double value = 0;  // absolute, in output units
  double share = 0;  // of the bound, 0..1
};

/// Where and by how much a result is wrong. Absent fields are empty or -1.
struct Divergence {
  uint32_t op_index = 0;
  int64_t request = -1, batch_slot = -1, layer = -1, head = -1, query_slot = -1, dimension = -1;
  std::string tensor;               // "output", "lse", "key cache", "value cache"
  double want = 0, got = 0;         // the reference's value and the observed one
  std::string want_bits, got_bits;  // hexadecimal, of the stored type
  double admissible_low = 0, admissible_high = 0;
  double bound = 0;
  std::string profile;  // assumption set that the bound was derived for
  std::vector<BudgetLine> budget;
  uint64_t kv_length = 0;
  int64_t position_offset = 0;
  std::vector<uint32_t> block_table;
  uint64_t cache_bytes_allocated = 0, cache_bytes_live = 0;
  std::string slot_digest;  // of the request's K/V as held
};

struct VerdictStats {
  uint64_t rows_judged = 0, rows_empty = 0, rows_pad = 0, elements_judged = 0, slots_judged = 0;
  uint64_t rows_vacuous = 0;
  uint64_t merges_vacuous = 0;       // of states that are no numbers
  uint64_t rows_profile_judged = 0;  // also under the declared tile order (B1, B2)
  uint64_t rows_left_out = 0;        // by JudgeOptions::sample_rows
  double error_bound_ratio_max = 0;  // largest |error| / bound seen
  uint64_t escalated = 0;            // elements that needed more than double
  uint64_t findings_suppressed = 0;  // of the device, by JudgeOptions::suppressions
};

struct Verdict {
  Outcome outcome = Outcome::kPass;
  Stage stage = Stage::kInterval;  // of the failure; meaningless for a pass
  std::string failure_class;       // stable name: "race", "wrong-slot", "output-value", ...
  std::string message;             // one paragraph for a person
  std::string variant;             // kernel variant that ran
  std::optional<Divergence> divergence;
  std::vector<DeviceFinding> findings;
  VerdictStats stats;
};

}  // namespace kv
