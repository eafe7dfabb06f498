#include "harness/judge/provenance_stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "harness/case/data.h"
#include "harness/judge/recogniser.h"

namespace kv {
namespace {

// Which slot of which row of the step lies at a place of a page; no row: it is not new.
struct NewSlot {
  const PlannedRow* row = nullptr;
  uint64_t slot = 0;
};
using NewSlots = std::map<PageId, std::vector<NewSlot>>;  // of pages with a new slot, all slots

NewSlots new_slots(const StepView& view) {
  NewSlots slots;
  const uint32_t page_slots = view.c.pool.page_slots;
  for (const PlannedRow& row : view.step.rows) {
    const Sequence& sequence = view.timeline.sequence(row.request);
    for (uint64_t s = row.kv_length - row.append_slots; s < row.kv_length; ++s) {
      std::vector<NewSlot>& page = slots[sequence.pages[s / page_slots]];
      page.resize(page_slots);
      page[s % page_slots] = {&row, s};
    }
  }
  return slots;
}

struct Mismatch {
  PagePlace place;
  uint32_t slot_in_page = 0;
  NewSlot want;                          // row == nullptr: it had to stay as it was
  std::vector<std::byte> expected, got;  // all heads
};

class Provenance {
 public:
  explicit Provenance(const StepView& view) : view_(view), new_slots_(new_slots(view)) {
    for (const PageImage& image : view.seen.pages) images_[place_of(image)] = &image;
  }

  std::optional<Failure> judge(ProvenanceCounts& counts) {
    for (const PagePlace& place : places()) compare_page(place, counts);
    if (mismatches_.empty()) return std::nullopt;
    return describe();
  }

 private:
  // Pages that were reported, and pages that should have been: both, in order.
  std::set<PagePlace> places() const {
    std::set<PagePlace> all;
    for (const auto& [place, image] : images_) all.insert(place);
    for (const auto& [page, slots] : new_slots_) {
      for (uint32_t layer = 0; layer < view_.c.shape.layers; ++layer) {
        all.insert({layer, false, page});
        if (!view_.c.shape.value_in_key) all.insert({layer, true, page});
      }
    }
    return all;
  }

  std::span<const std::byte> page_now(const PagePlace& place) const {
    const auto found = images_.find(place);
    if (found != images_.end()) return found->second->bytes.span();
    return view_.pool.page(place);
  }

  void compare_page(const PagePlace& place, ProvenanceCounts& counts) {
    const uint32_t bytes = view_.pool.slot_bytes(place.value);
    const std::span<const std::byte> now = page_now(place);
    const std::span<const std::byte> before = view_.pool.page(place);
    const auto owners = new_slots_.find(place.page);
    for (uint32_t s = 0; s < view_.c.pool.page_slots; ++s) {
      const auto got = now.subspan(size_t{s} * bytes, bytes);
      NewSlot want;
      std::span<const std::byte> expected = before.subspan(size_t{s} * bytes, bytes);
      if (owners != new_slots_.end()) want = owners->second[s];
      if (want.row != nullptr) {
        if (view_.conversion.changes(place.value)) {
          view_.conversion.nearest(slot_of(want), place, got, scratch_);
        } else {
          token_bytes(view_, *want.row, want.slot, place, scratch_);
        }
        expected = scratch_;
        counts.slots += place.value || view_.c.shape.value_in_key;
      }
      if (std::memcmp(expected.data(), got.data(), bytes) == 0) continue;
      if (mismatches_.size() == kMismatchesMax) return;
      mismatches_.push_back(
          {place, s, want, {expected.begin(), expected.end()}, {got.begin(), got.end()}});
    }
  }

  SlotOf slot_of(const NewSlot& slot) const {
    return {view_.timeline.sequence(slot.row->request), slot.slot, slot.row->kv_length};
  }
  /// Of a slot that the plugin converts: which element is wrong, and what it was made of.
  std::string element_text(const Mismatch& m, const Divergence& d) const;
  Failure describe() const;
  std::string name_of(const Mismatch& m, const Recogniser& recogniser, std::string& what) const;
  Divergence divergence(const Mismatch& m) const;

  static constexpr size_t kMismatchesMax = 256;
  const StepView& view_;
  const NewSlots new_slots_;
  std::map<PagePlace, const PageImage*> images_;  // the latest of each page
  std::vector<std::byte> scratch_;
  std::vector<Mismatch> mismatches_;
};

// The most telling name first: where a token ended up says more than where it is missing.
int rank_of(const std::string& name) {
  const char* order[] = {"foreign-slot", "wrong-slot", "damaged-slot", "stray-write",
                         "unwritten-slot"};
  return static_cast<int>(std::find(std::begin(order), std::end(order), name) - std::begin(order));
}

std::string Provenance::name_of(const Mismatch& m, const Recogniser& recogniser,
                                std::string& what) const {
  const std::optional<Origin> origin = recogniser.recognise(m.got);
  const RequestId owner = m.want.row ? m.want.row->request : RequestId{};
  if (origin) what = "it holds " + origin->text() + " instead";
  if (m.want.row == nullptr) {
    // A slot of nobody's: the token that landed here tells where it should have gone.
    if (origin) return "wrong-slot";
    what = "its bytes changed though the operation does not own it";
    return "stray-write";
  }
  if (origin) return origin->request == owner ? "wrong-slot" : "foreign-slot";
  const auto before = view_.pool.slot(m.place, m.slot_in_page);
  if (std::equal(before.begin(), before.end(), m.got.begin(), m.got.end())) {
    what = "it was not written: it holds what was there before";
    return "unwritten-slot";
  }
  what = "it holds bytes of no token";
  return "damaged-slot";
}

Divergence Provenance::divergence(const Mismatch& m) const {
  Divergence d;
  if (m.want.row != nullptr) d = divergence_at(view_, *m.want.row, m.place.layer);
  d.op_index = view_.seen.op_index;
  d.layer = m.place.layer;
  const Shape& shape = view_.c.shape;
  const uint32_t bytes = dtype_bytes(shape.kv_dtype);
  const size_t first =
      static_cast<size_t>(std::mismatch(m.expected.begin(), m.expected.end(), m.got.begin()).first -
                          m.expected.begin());
  const size_t element = first / bytes, dim = m.place.value ? shape.head_dim_v : shape.head_dim_k;
  uint32_t want = 0, got = 0;
  std::memcpy(&want, &m.expected[element * bytes], bytes);
  std::memcpy(&got, &m.got[element * bytes], bytes);
  d.tensor = m.place.value ? "value cache" : "key cache";
  d.query_slot = m.want.row ? static_cast<int64_t>(m.want.slot) : -1;
  d.head = static_cast<int64_t>(element / dim);
  d.dimension = static_cast<int64_t>(element % dim);
  d.want = decode(shape.kv_dtype, want);
  d.got = decode(shape.kv_dtype, got);
  d.want_bits = hex_bits(shape.kv_dtype, want);
  d.got_bits = hex_bits(shape.kv_dtype, got);
  return d;
}

std::string Provenance::element_text(const Mismatch& m, const Divergence& d) const {
  if (m.want.row == nullptr || !view_.conversion.changes(m.place.value)) return "";
  std::vector<StoredElement> elements;
  const SlotOf of = slot_of(m.want);
  view_.conversion.admissible(of, m.place, static_cast<uint32_t>(d.head), elements);
  return fmt::format(
      " Head {}, dimension {} is {} ({}): {}.", d.head, d.dimension, d.got, d.got_bits,
      view_.conversion.text(elements[static_cast<size_t>(d.dimension)], of, m.place));
}

Failure Provenance::describe() const {
  const Recogniser recogniser(view_, mismatches_.front().place.layer);
  const Mismatch* chosen = nullptr;
  std::string name, what;
  for (const Mismatch& m : mismatches_) {
    std::string this_what;
    const std::string this_name = name_of(m, recogniser, this_what);
    if (chosen != nullptr && rank_of(this_name) >= rank_of(name)) continue;
    chosen = &m;
    name = this_name;
    what = this_what;
  }
  const Mismatch& m = *chosen;
  const std::string owner =
      m.want.row ? "slot " + std::to_string(m.want.slot) + " of request " +
                       std::to_string(m.want.row->request.value)
                 : "a slot that operation " + std::to_string(view_.seen.op_index) + " does not own";
  std::string message =
      std::string("The ") + (m.place.value ? "value" : "key") + " cache of " + owner + " (layer " +
      std::to_string(m.place.layer) + ", page " + std::to_string(m.place.page.value) + ", offset " +
      std::to_string(m.slot_in_page) + ") is wrong: " + what + ". " +
      std::to_string(mismatches_.size()) +
      (mismatches_.size() == kMismatchesMax ? " or more" : "") + " slots differ in all.";
  Divergence d = divergence(m);
  message += element_text(m, d);
  return {Stage::kProvenance, name, std::move(message), std::move(d)};
}

}  // namespace

std::optional<Failure> judge_provenance(const StepView& view, ProvenanceCounts& counts) {
  return Provenance(view).judge(counts);
}

}  // namespace kv
