#include "harness/case/mask_bits.h"

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

bool mask_shows(const Case& c, const Sequence& sequence, MaskPlace where) {
  if (c.mask.encoding == MaskEncoding::kNone) return true;
  const uint64_t request = c.mask.broadcast_batch ? 0 : uint64_t{sequence.request.value} + 1;
  const uint64_t query = c.mask.broadcast_query ? 0 : where.query;
  const bool hole = !c.mask.broadcast_batch && sequence.slots.at(where.key).pad;
  return !hole && pattern_shows(Philox{c.data.seed ^ kMaskUse}, request << 32 | query, where.key);
}

}  // namespace kv
