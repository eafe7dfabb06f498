#include "harness/case/mask_bits.h"

#include "harness/case/data_view.h"

namespace kv {
namespace {

constexpr uint64_t kMaskUse = 0x6d61736b;  // "mask": this use of the data seed
constexpr uint32_t kTileSlots = 16;

}  // namespace

MaskRow::Kind MaskRow::kind_of(uint64_t word) {
  constexpr Kind kKinds[] = {Kind::kEverything, Kind::kSparse, Kind::kSparse, Kind::kTiles,
                             Kind::kTiles,      Kind::kRun,    Kind::kRun,    Kind::kNothing};
  return kKinds[word % 8];
}

uint32_t mask_heads(const Case& c) {
  const bool shared = c.mask.encoding == MaskEncoding::kNone || c.mask.broadcast_head;
  return shared ? 1 : c.shape.query_heads;
}

MaskRow::MaskRow(const Case& c, const Sequence& sequence, QueryHead of) : sequence_(sequence) {
  if (c.mask.encoding == MaskEncoding::kNone) return;
  hides_pads_ = !c.mask.broadcast_batch;
  const uint64_t request = c.mask.broadcast_batch ? 0 : sequence.request.value;
  const uint64_t query = c.mask.broadcast_query ? 0 : of.query;
  if (c.mask.first_number) {
    kind_ = Kind::kNumber;
    random_ = {*c.mask.first_number + request};
    row_ = query * sequence.slots.size();
    return;
  }
  const uint64_t head =
      mask_heads(c) == 1 ? 0 : source_of(c, {.role = TensorRole::kQuery, .head = of.head}).head;
  const uint64_t number = c.mask.broadcast_batch ? 0 : request + 1;
  random_ = {c.data.seed ^ kMaskUse ^ head << 40};
  row_ = number << 32 | query;
  const uint64_t word = random_.word(row_, 0);
  kind_ = kind_of(word);
  if (kind_ != Kind::kRun) return;
  run_begin_ = word >> 8 & 63;
  run_end_ = run_begin_ + (word >> 16 & 63);
}

bool MaskRow::shows(uint32_t key) const {
  if (hides_pads_ && sequence_.slots.at(key).pad) return false;  // a hole
  switch (kind_) {
    case Kind::kEverything:
      return true;
    case Kind::kSparse:
      return random_.word(row_, 1 + key) % 8 != 0;
    case Kind::kTiles:
      return random_.word(row_, 1 + key / kTileSlots) % 2 != 0;
    case Kind::kRun:
      return key >= run_begin_ && key < run_end_;
    case Kind::kNothing:
      return false;
    case Kind::kNumber:
      return row_ + key >= 64 || random_.key >> (row_ + key) & 1;
  }
  return true;
}

}  // namespace kv
