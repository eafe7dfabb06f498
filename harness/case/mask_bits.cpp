#include "harness/case/mask_bits.h"

#include "harness/case/data_view.h"
#include "harness/core/philox.h"

namespace kv {
namespace {

constexpr uint64_t kMaskUse = 0x6d61736b;  // "mask": this use of the data seed
constexpr uint32_t kTileSlots = 16;

// What a row of the tensor looks like: the shapes that masks have, and the ones that break kernels.
enum class Pattern : uint8_t { kEverything, kSparse, kTiles, kRun, kNothing };

Pattern pattern_of(uint64_t word) {
  constexpr Pattern kPatterns[] = {Pattern::kEverything, Pattern::kSparse, Pattern::kSparse,
                                   Pattern::kTiles,      Pattern::kTiles,  Pattern::kRun,
                                   Pattern::kRun,        Pattern::kNothing};
  return kPatterns[word % 8];
}

bool pattern_shows(const Philox& random, uint64_t row, uint32_t key) {
  const uint64_t word = random.word(row, 0);
  switch (pattern_of(word)) {
    case Pattern::kEverything:
      return true;
    case Pattern::kSparse:
      return random.word(row, 1 + key) % 8 != 0;
    case Pattern::kTiles:
      return random.word(row, 1 + key / kTileSlots) % 2 != 0;
    case Pattern::kRun: {
      const uint64_t first = word >> 8 & 63, length = word >> 16 & 63;
      return key >= first && key < first + length;
    }
    case Pattern::kNothing:
      return false;
  }
  return true;
}

}  // namespace

uint32_t mask_heads(const Case& c) {
  const bool shared = c.mask.encoding == MaskEncoding::kNone || c.mask.broadcast_head;
  return shared ? 1 : c.shape.query_heads;
}

bool mask_shows(const Case& c, const Sequence& sequence, MaskPlace where) {
  if (c.mask.encoding == MaskEncoding::kNone) return true;
  const uint64_t request = c.mask.broadcast_batch ? 0 : sequence.request.value;
  const uint64_t query = c.mask.broadcast_query ? 0 : where.query;
  if (!c.mask.broadcast_batch && sequence.slots.at(where.key).pad) return false;  // a hole
  if (c.mask.first_number) {
    const uint64_t bit = query * sequence.slots.size() + where.key;
    return bit >= 64 || (*c.mask.first_number + request) >> bit & 1;
  }
  const uint64_t head =
      mask_heads(c) == 1 ? 0 : source_of(c, {.role = TensorRole::kQuery, .head = where.head}).head;
  const uint64_t number = c.mask.broadcast_batch ? 0 : request + 1;
  return pattern_shows(Philox{c.data.seed ^ kMaskUse ^ head << 40}, number << 32 | query,
                       where.key);
}

}  // namespace kv
