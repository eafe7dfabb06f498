// Purpose: what a dump's tensors do not say: scale, mask, page size, order of the cache.
// Contract: nothing is guessed silently: what neither the options nor the dump say gets the default
// below, and `assumed` names it. In a dump the settings are safetensors metadata or tensors of one
// number, by these names: scale, softcap, causal (none, top_left, bottom_right), window_left,
// window_right, page_size, layout (slot_head, head_slot), kv_dtype (e4m3, e5m2). Options come
// before the dump. Example: KV_ASSIGN_OR_RETURN(DumpSettings s, settings_of(file, given, path));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case/case.h"
#include "harness/case/tensor_file.h"
#include "harness/core/result.h"

namespace kv {

struct DumpSettings {
  std::optional<double> scale;                       // default: 1/sqrt(head dimension)
  std::optional<double> softcap;                     // default: none
  std::optional<Causal> causal;                      // default: bottom_right
  std::optional<int64_t> window_left, window_right;  // default: unlimited
  std::optional<uint64_t> page_size;  // default: the dump's, 16 where it has no pages
  std::optional<CacheLayout> layout;  // default: slot_head
  /// Of K and V that are stored as bytes without a type (U8): e4m3 or e5m2. No default.
  std::optional<DType> kv_dtype;
};

/// The settings in `file` under those in `given`. `name`: of the file, in messages.
Result<DumpSettings> settings_of(const TensorFile& file, const DumpSettings& given,
                                 std::string_view name);

/// Is it the name of a setting?
bool is_setting(std::string_view name);

}  // namespace kv
