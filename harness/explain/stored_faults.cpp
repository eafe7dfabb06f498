#include "harness/explain/stored_faults.h"

#include <cstring>
#include <optional>

#include "harness/judge/conversion.h"

namespace kv {
namespace {

constexpr uint64_t kRowsMax = 4096;  // slots * heads * layers that are looked at

/// How an append may go wrong for a whole tensor.
struct Append {
  std::string name, sentence;
  bool keys = true, values = true;  // what it changes
  std::optional<Rope> rope = {};    // instead of the case's
  int64_t position_shift = 0;
  bool ignores_offset = false;
  enum class Scale : uint8_t { kOwn, kNone, kTwice, kNext, kPrevious, kNextHead, kPage, kOther };
  Scale scale = Scale::kOwn;
  std::optional<DType> type = {};  // that the codes are written in
};

void rope_faults(const Case& c, std::vector<Append>& out) {
  const Rope rope = c.shape.rope;
  const auto add = [&](const char* name, const char* sentence, Append fault) {
    fault.name = name;
    fault.sentence = sentence;
    fault.values = false;
    out.push_back(std::move(fault));
  };
  Rope other = rope;
  other.pairing =
      rope.pairing == RopePairing::kNeox ? RopePairing::kInterleaved : RopePairing::kNeox;
  add("key-rope-pairing", "keys are turned in pairs of the other kind", {.rope = other});
  add("key-rope-missing", "keys are not turned", {.rope = Rope{}});
  add("key-position-plus-one", "keys are turned to the position after theirs",
      {.position_shift = 1});
  add("key-position-minus-one", "keys are turned to the position before theirs",
      {.position_shift = -1});
  add("key-position-offset-ignored", "keys are turned as if their request's position offset were 0",
      {.ignores_offset = true});
  Rope more = rope, less = rope;
  more.dims += 2;
  less.dims -= 2;
  if (more.dims <= c.shape.head_dim_k)
    add("key-rope-one-pair-more", "one pair of dimensions too many is turned", {.rope = more});
  if (less.dims > 0)
    add("key-rope-one-pair-less", "one pair of dimensions too few is turned", {.rope = less});
}

void scale_faults(std::vector<Append>& out) {
  using Scale = Append::Scale;
  struct Fault {
    const char* name;
    const char* sentence;
    Scale scale;
  };
  constexpr Fault kFaults[] = {
      {"missing", "is left out", Scale::kNone},
      {"twice", "divides twice", Scale::kTwice},
      {"of-next-slot", "is that of the next slot", Scale::kNext},
      {"of-previous-slot", "is that of the slot before", Scale::kPrevious},
      {"of-next-head", "is that of the next head", Scale::kNextHead},
      {"of-page", "is that of the first slot of the page", Scale::kPage},
      {"of-other-tensor", "is that of the other tensor", Scale::kOther},
  };
  for (const bool value : {false, true}) {
    for (const Fault& fault : kFaults) {
      out.push_back(
          {.name = std::string("stored-") + (value ? "value" : "key") + "-scale-" + fault.name,
           .sentence = std::string("the scale that ") + (value ? "V" : "K") + " is divided by " +
                       fault.sentence,
           .keys = !value,
           .values = value,
           .scale = fault.scale});
    }
  }
}

std::vector<Append> appends(const Case& c) {
  std::vector<Append> out;
  if (c.shape.rope.pairing != RopePairing::kNone) rope_faults(c, out);
  if (c.shape.kv_scale != KvScale::kNone) scale_faults(out);
  if (dtype_bytes(c.shape.kv_dtype) != 1) return out;
  for (const DType other : {DType::kE4m3, DType::kE5m2, DType::kI8}) {
    const std::string name(dtype_name(other));
    if (other != c.shape.kv_dtype)
      out.push_back({.name = "stored-codes-as:" + name,
                     .sentence = "K and V are rounded to codes of " + name,
                     .type = other});
  }
  return out;
}

class Step {
 public:
  Step(const Case& c, const Observation& observation, uint32_t op_index)
      : c_(c), timeline_(Timeline::create(c).value()), pool_(c) {
    for (uint32_t i = 0; i <= op_index; ++i) {
      step_ = timeline_.apply(i);
      for (const PageImage& image : observation.ops[i].pages) {
        if (pool_.defect(image).empty()) pool_.replace(image);
      }
    }
  }

  /// Whether all new slots hold what this append may store.
  bool holds(const Append& append) const {
    const reference::Rotator rotator(append.rope.value_or(c_.shape.rope), {});
    uint64_t left = kRowsMax;
    for (const PlannedRow& row : step_.rows) {
      const Sequence& sequence = timeline_.sequence(row.request);
      for (uint64_t s = row.kv_length - row.append_slots; s < row.kv_length; ++s) {
        for (uint32_t layer = 0; layer < c_.shape.layers; ++layer) {
          for (uint32_t head = 0; head < c_.shape.kv_heads; ++head) {
            if (left-- == 0) return true;
            const SlotOf of{sequence, s, row.kv_length};
            for (const bool value : {false, true}) {
              if (!row_holds(append, rotator, of, {layer, value, head})) return false;
            }
          }
        }
      }
    }
    return true;
  }

 private:
  float scale(const Append& append, const SlotOf& of, const ScalePlace& place) const {
    using Scale = Append::Scale;
    const auto at = [&](uint64_t slot, ScalePlace p) {
      return slot_scale(c_, of.sequence, slot, p);
    };
    ScalePlace other = place;
    const float own = at(of.slot, place);
    if (!(place.value ? append.values : append.keys)) return own;
    switch (append.scale) {
      case Scale::kOwn:
        return own;
      case Scale::kNone:
        return 1;
      case Scale::kTwice:
        return own * own;
      case Scale::kNext:
        return of.slot + 1 < of.sequence.slots.size() ? at(of.slot + 1, place) : own;
      case Scale::kPrevious:
        return of.slot > 0 ? at(of.slot - 1, place) : own;
      case Scale::kNextHead:
        other.head = (place.head + 1) % c_.shape.kv_heads;
        return at(of.slot, other);
      case Scale::kPage:
        return at(of.slot / c_.pool.page_slots * c_.pool.page_slots, place);
      case Scale::kOther:
        other.value = !place.value;
        return at(of.slot, other);
    }
    return own;
  }

  reference::RotatedRow source(const Append& append, const reference::Rotator& rotator,
                               const SlotOf& of, const ScalePlace& place) const {
    const Slot& slot = of.sequence.slots[of.slot];
    const std::vector<double> row = source_row(c_, of, place);
    if (place.value) return {row, std::vector<double>(row.size(), 0)};
    int64_t position = slot.position + append.position_shift;
    if (append.ignores_offset) position -= of.sequence.position_offset;
    return rotator.rotate(position, row);
  }

  bool row_holds(const Append& append, const reference::Rotator& rotator, const SlotOf& of,
                 const ScalePlace& place) const {
    const reference::RotatedRow row = source(append, rotator, of, place);
    const PageId page = of.sequence.pages[of.slot / c_.pool.page_slots];
    const auto bytes = pool_.row({place.layer, place.value, page},
                                 static_cast<uint32_t>(of.slot % c_.pool.page_slots), place.head);
    const DType stored = c_.shape.kv_dtype, type = append.type.value_or(stored);
    reference::StoredElement element{.dtype = type};
    if (c_.shape.kv_scale != KvScale::kNone) element.scale = scale(append, of, place);
    if (element.scale == 0.0f) return false;
    for (size_t i = 0; i < row.value.size(); ++i) {
      element.value = row.value[i];
      element.error = row.error[i];
      const reference::StoredRange range = reference::admissible_store(element);
      uint32_t code = 0;
      std::memcpy(&code, &bytes[i * dtype_bytes(stored)], dtype_bytes(stored));
      const double got = decode(type, code);
      if (!(got >= range.low && got <= range.high)) return false;
    }
    return true;
  }

  const Case& c_;
  Timeline timeline_;
  PlannedStep step_;
  PoolImage pool_;
};

}  // namespace

StoredFaults stored_faults(const Case& c, const Observation& observation, uint32_t op_index) {
  StoredFaults faults;
  const Step step(c, observation, op_index);
  if (step.holds({})) return faults;
  for (const Append& append : appends(c)) {
    ++faults.hypotheses;
    if (step.holds(append)) faults.remain.push_back({append.name, append.sentence});
  }
  return faults;
}

}  // namespace kv
