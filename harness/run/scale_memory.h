// Purpose: the dequantisation scales of K or of V of one layer, on the device.
// Contract: read-only for kernels. Scales of slots that no token has taken yet are the pool's
// poison (a NaN, or a huge number), undefined where the pool's are; write() gives those of a step's
// new slots before its append. Scales of pages that were given back keep their bytes, which nobody
// may use. No memory at all where the case has no scales. Example:
// KV_RETURN_IF_ERROR(scales.write(c, timeline, step)); args.cache.key_scale = scales.data();
#pragma once

#include <span>
#include <vector>

#include "harness/case/kv_scales.h"
#include "harness/run/device_buffer.h"

namespace kv {

class ScaleMemory {
 public:
  /// `place.head` is not used.
  static Result<ScaleMemory> create(const Case& c, ScalePlace place, const CudaRuntime& runtime);

  const float* data() const { return static_cast<const float*>(memory_.data()); }
  Result<void> write(const Case& c, const Timeline& timeline, const PlannedStep& step);
  void retire(std::span<const PageId> pages) const;
  Result<void> add_trespasses(std::vector<Trespass>& found) const;

 private:
  ScaleMemory() = default;
  const char* name() const { return place_.value ? "value_scale" : "key_scale"; }

  ScalePlace place_;
  ScaleLayout layout_;
  bool undefined_ = false;  // poison kUndefined
  DeviceBuffer memory_;
  std::vector<float> host_;
};

}  // namespace kv
