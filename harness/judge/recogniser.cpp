#include "harness/judge/recogniser.h"

#include "harness/case/data.h"
#include "harness/core/hash.h"

namespace kv {
namespace {

void fill_heads(const Case& c, const SlotOf& of, const PagePlace& place,
                std::vector<std::byte>& out) {
  const TensorRole role = place.value ? TensorRole::kValue : TensorRole::kKey;
  const size_t bytes = row_bytes(c.shape, role);
  out.resize(bytes * c.shape.kv_heads);
  for (uint32_t head = 0; head < c.shape.kv_heads; ++head) {
    fill_row(c, address_of(of, {place.layer, place.value, head}), of.sequence.slots[of.slot],
             std::span(out).subspan(head * bytes, bytes));
  }
}

}  // namespace

void token_bytes(const StepView& view, const PlannedRow& row, uint64_t slot, const PagePlace& place,
                 std::vector<std::byte>& out) {
  fill_heads(view.c, {view.timeline.sequence(row.request), slot, row.kv_length}, place, out);
}

std::string Origin::text() const {
  return std::string(value ? "V" : "K") + " of slot " + std::to_string(slot) + " of request " +
         std::to_string(request.value) + " in layer " + std::to_string(layer);
}

Recogniser::Recogniser(const StepView& view, uint32_t layer) : conversion_(view.conversion) {
  for (const auto& [request, sequence] : view.timeline.sequences()) add(view, sequence, layer);
  for (const PlannedRow& row : view.step.rows) {
    for (uint32_t other = 0; other < view.c.shape.layers; ++other) {
      if (other != layer) add(view, view.timeline.sequence(row.request), other);
    }
  }
}

void Recogniser::add(const StepView& view, const Sequence& sequence, uint32_t layer) {
  std::vector<std::byte> bytes;
  for (uint64_t s = 0; s < sequence.slots.size() && slots_ < kSlotsMax; ++s, ++slots_) {
    for (bool value : {false, true}) {
      const PagePlace place{layer, value, {}};
      const SlotOf of{sequence, s, static_cast<uint32_t>(sequence.slots.size())};
      const Origin origin{sequence.request, s, layer, value};
      if (conversion_.changes(value)) {
        converted_.push_back({origin, of});
        continue;
      }
      fill_heads(view.c, of, place, bytes);
      known_.try_emplace(hash_bytes(bytes), origin);
    }
  }
}

std::optional<Origin> Recogniser::recognise(std::span<const std::byte> slot_bytes) const {
  const auto found = known_.find(hash_bytes(slot_bytes));
  if (found != known_.end()) return found->second;
  if (converted_.empty() || searches_left_ == 0) return std::nullopt;
  --searches_left_;
  for (const Candidate& candidate : converted_) {
    const PagePlace place{candidate.origin.layer, candidate.origin.value, {}};
    if (conversion_.admits(candidate.of, place, slot_bytes)) return candidate.origin;
  }
  return std::nullopt;
}

}  // namespace kv
