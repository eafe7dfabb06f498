// Purpose: whose token is this? Names the bytes that stand where another token should.
// Contract: built only when something is wrong: it computes K and V of every live slot, at most
// kSlotsMax of them. Recognises one slot's heads as a whole; a slot whose heads were permuted or
// mixed up belongs to nobody. Where the plugin rotates or quantises, whoever may have become these
// bytes is named, for the first kSearchesMax slots.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/failure.h"

namespace kv {

/// The bytes of all heads of the slot's K or V, as the data function gives them.
void token_bytes(const StepView& view, const PlannedRow& row, uint64_t slot, const PagePlace& place,
                 std::vector<std::byte>& out);

struct Origin {
  RequestId request;
  uint64_t slot = 0;
  uint32_t layer = 0;
  bool value = false;
  std::string text() const;
};

class Recogniser {
 public:
  /// Knows the tokens of `layer` and, for the step's own rows, of every layer.
  Recogniser(const StepView& view, uint32_t layer);
  std::optional<Origin> recognise(std::span<const std::byte> slot_bytes) const;

  static constexpr uint64_t kSlotsMax = 1u << 16;
  /// Slots that are held against every candidate: each costs a rotation of all of them.
  static constexpr uint32_t kSearchesMax = 16;

 private:
  void add(const StepView& view, const Sequence& sequence, uint32_t layer);
  std::map<uint64_t, Origin> known_;  // by hash of the bytes
  uint64_t slots_ = 0;

  /// Tokens whose bytes are not known but for the set that they must lie in.
  struct Candidate {
    Origin origin;
    SlotOf of;
  };
  const Conversion& conversion_;
  std::vector<Candidate> converted_;
  mutable uint32_t searches_left_ = kSearchesMax;
};

}  // namespace kv
