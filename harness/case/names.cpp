#include "harness/case/names.h"

#include <array>

// `Last` is the last enumerator: one that is added without its name does not compile.
#define KV_NAME_TABLE(Enum, Last, ...)                                             \
  template <>                                                                      \
  std::span<const std::string_view> name_table<Enum>() {                           \
    static constexpr auto kNames = std::to_array<std::string_view>({__VA_ARGS__}); \
    static_assert(kNames.size() == static_cast<size_t>(Enum::Last) + 1);           \
    return kNames;                                                                 \
  }

namespace kv {

KV_NAME_TABLE(DType, kI8, "f32", "f16", "bf16", "e4m3", "e5m2", "i8")
KV_NAME_TABLE(RopePairing, kInterleaved, "none", "neox", "interleaved")
KV_NAME_TABLE(KvScale, kPage, "none", "tensor", "head", "token", "page")
KV_NAME_TABLE(Causal, kBottomRight, "none", "top_left", "bottom_right")
KV_NAME_TABLE(MaskEncoding, kAdditive, "none", "packed_bits", "bool_keep", "bool_block", "additive")
KV_NAME_TABLE(PageOrder, kFarApart, "identity", "reversed", "shuffled", "far_apart")
KV_NAME_TABLE(CacheLayout, kInterleaved, "slot_head", "head_slot", "interleaved")
KV_NAME_TABLE(Poison, kNan, "undefined", "finite_huge", "nan")
KV_NAME_TABLE(Design, kConstantValue, "normal", "uniform_exact", "dyadic", "subset_select",
              "sparse_code", "boundary_needles", "ascending", "large_scores", "census",
              "constant_value")
KV_NAME_TABLE(Rounding, kMmaHopper, "nearest", "random", "up", "down", "mma_ampere", "mma_hopper")
KV_NAME_TABLE(op::Hostile::Kind, kStepInFlightTwice, "length_minus_one", "length_plus_one",
              "released_handle", "foreign_handle", "wrong_dtype", "past_limit", "corrupt_restore",
              "truncated_restore", "duplicate_request", "step_in_flight_twice")

std::span<const std::string_view> op_names() {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"admit", "append", "step", "fork", "reorder", "truncate", "shift", "cancel", "finish",
       "preempt", "resume", "evict", "defrag", "save", "restore", "complete", "fail_allocation",
       "hostile"});
  static_assert(kNames.size() == std::variant_size_v<Op>);
  return kNames;
}

}  // namespace kv
