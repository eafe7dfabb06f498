// Purpose: stage 1, what holds of a result whatever its values: status, bytes that had to stay,
// rows that must be empty or PAD as declared, and no NaN where the inputs are finite.
// Contract: malformed() first: the stages rely on sizes that it has checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/judge/failure.h"

namespace kv {

/// What is wrong with the form of an observation (it came from a process whose memory the code
/// under test shares), or "".
std::string malformed(const StepView& view);

std::optional<Failure> judge_status(const OpObservation& seen);
std::optional<Failure> judge_trespasses(const OpObservation& seen);

/// What each head of each query row of the step sees: 0/1 for each slot.
class VisibleSets {
 public:
  /// `heads` is 1 when every head sees the same.
  explicit VisibleSets(uint32_t heads) : heads_(heads) {}
  void add(std::vector<uint8_t> slots) { sets_.push_back(std::move(slots)); }  // heads innermost
  const std::vector<uint8_t>& of(uint64_t token, uint32_t head) const {
    return sets_[token * heads_ + (heads_ == 1 ? 0 : head)];
  }

 private:
  uint32_t heads_;
  std::vector<std::vector<uint8_t>> sets_;
};
VisibleSets visible_sets(const StepView& view);

/// What the contract asks of a query row.
enum class RowDuty : uint8_t { kValues, kEmpty, kPadZero, kUnwritten, kNothing };
RowDuty row_duty(const StepView& view, const RowPlace& place, const std::vector<uint8_t>& visible);

struct ContractCounts {
  uint64_t rows_empty = 0, rows_pad = 0;
};
std::optional<Failure> judge_rows(const StepView& view, const VisibleSets& visible,
                                  ContractCounts& counts);

}  // namespace kv
