#include "properties/case_walk.h"

#include "harness/case/data.h"

namespace kv::props {

Timeline at_end(const Case& c) {
  Timeline timeline = Timeline::create(c).value();
  for (uint32_t i = 0; i < c.ops.size(); ++i) timeline.apply(i);
  return timeline;
}

std::vector<std::byte> stored_bytes(const Case& c, const Sequence& sequence) {
  std::vector<std::byte> bytes;
  for (const TensorRole role : {TensorRole::kKey, TensorRole::kValue}) {
    const size_t row = row_bytes(c.shape, role);
    for (uint32_t layer = 0; layer < c.shape.layers; ++layer) {
      for (uint64_t slot = 0; slot < sequence.slots.size(); ++slot) {
        for (uint32_t head = 0; head < c.shape.kv_heads; ++head) {
          bytes.resize(bytes.size() + row);
          fill_row(c,
                   {.role = role,
                    .request = sequence.request,
                    .slot = slot,
                    .layer = layer,
                    .head = head},
                   sequence.slots[slot], std::span(bytes).last(row));
        }
      }
    }
  }
  return bytes;
}

}  // namespace kv::props
