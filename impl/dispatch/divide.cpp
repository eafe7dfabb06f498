#include "impl/dispatch/divide.h"

#include <algorithm>
#include <limits>

#include "impl/dispatch/validate.h"

namespace kvattn {
namespace {

/// Splits so large that every multiprocessor has blocks and none has many, and worth their merge.
uint32_t split_by_occupancy(const BatchDescription& batch, int64_t kv_heads, int64_t longest) {
  constexpr int64_t kBlocksWanted = 2;  // for each multiprocessor
  constexpr int64_t kStepSlots = 256;
  const int64_t with_queries =
      std::ranges::count_if(batch.query_lengths, [](int32_t length) { return length > 0; });
  const int64_t blocks = std::max<int64_t>(with_queries * kv_heads, 1);
  const int64_t splits = std::max<int64_t>(kBlocksWanted * batch.multiprocessors / blocks, 1);
  const int64_t slots = (longest + splits - 1) / splits;
  const int64_t rounded = (slots + kStepSlots - 1) / kStepSlots * kStepSlots;
  return static_cast<uint32_t>(std::min<int64_t>(rounded, std::numeric_limits<int32_t>::max()));
}

}  // namespace

bool divides_tokens(Kernel kernel) {
  return kernel == &AttendLaunchers::invariant || kernel == &AttendLaunchers::latent;
}
bool is_divided(Kernel kernel) {
  return kernel == &AttendLaunchers::decode || divides_tokens(kernel);
}

void divide(Plan& plan, const BatchDescription& batch, int64_t kv_heads, Kernel kernel) {
  plan.partial_units = divides_tokens(kernel) ? plan.tokens : plan.requests;
  const int64_t longest = *std::ranges::max_element(batch.kv_lengths);
  plan.split_slots = batch.split_slots > 0 ? batch.split_slots : kSplitSlots;
  if (batch.split_slots == 0 && batch.multiprocessors > 0 && longest > 0) {
    plan.split_slots = split_by_occupancy(batch, kv_heads, longest);
  }
  const int64_t splits = (longest + plan.split_slots - 1) / plan.split_slots;
  plan.splits_max = static_cast<uint32_t>(std::max<int64_t>(splits, 1));
}

}  // namespace kvattn
