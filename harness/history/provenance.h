// Purpose: does every slot hold its own token's bytes, K and V, in each layer? And does every
// published prefix hold the bytes of the tokens that its key names?
// Contract: where K and V are stored as they are given, bytes are compared with the content
// function, without floating point; where append rotates or quantises, as written.h says. Slots
// that a window has let go are skipped. A read that fails is a finding, too.
// Example:  if (auto found = provenance.check(model, state, {.touched = model.touched()})) ...
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/engine/content.h"
#include "harness/engine/engine.h"
#include "harness/engine/last_round.h"
#include "harness/history/finding.h"
#include "harness/history/model.h"
#include "harness/history/written.h"

namespace kv {

class Provenance {
 public:
  Provenance(const Case& c, Engine& engine);

  /// One cache: the slots that are touched in it, and, of the target cache, published prefixes.
  struct Scope {
    CacheKind cache = CacheKind::kTarget;
    std::span<const Touched> touched;  // in both caches
    bool all_prefixes = false;         // not only those that are new or have another page now
  };
  /// `state`: of that cache. All is read at once.
  MaybeFinding check(const Model& model, const EngineState& state, const Scope& scope);

  /// What the operation that has just succeeded appended, and turned.
  void note(const Model& model, const call::Step* step);
  /// No bytes are left that have been appended and not looked at.
  void settle() { written_.settle(); }

  uint64_t slots_read() const { return slots_read_; }

 private:
  /// Slots that are read at once, and the first of the tokens that must lie there.
  struct Wanted {
    SlotPlace place;
    size_t first_token = 0;  // of tokens_
  };
  MaybeFinding compare_all(CacheKind cache);  // what has been wanted
  MaybeFinding compare(CacheKind cache, std::span<const Wanted> wanted);
  MaybeFinding compare_place(CacheKind cache, const Wanted& wanted, const SlotBytes& got);
  std::optional<std::string> find_fault(size_t token, ContentLayer layer, bool value,
                                        const SlotBytes& got, size_t slot);
  void want_tokens(std::span<const StoredToken> slots, uint64_t begin);
  MaybeFinding find_unreadable(CacheKind cache, const SlotPlace& place);
  HistoryFinding at(CacheKind cache, SlotPlace place, const char* what) const;
  void want_slots(SlotPlace place, uint64_t end, size_t first_token);
  void want_touched(const Model& model, const EngineState& state, const Touched& touched);
  void want_prefixes(const EngineState& state, bool everything);

  const Case& case_;
  Engine& engine_;
  Content content_;
  std::vector<CacheGroup> groups_;
  /// Where the tokens of a page lead from a prefix.
  struct Path {
    uint64_t before = 0, slot = 0, after = 0;
  };
  uint64_t follow(const PrefixState& prefix, uint64_t before, uint64_t slot);
  void want_page(const PrefixState& prefix, uint32_t group, uint64_t before, uint64_t slot);

  LastRound<Path> paths_;                     // by the number of the tokens
  std::vector<uint64_t> verified_, current_;  // [page]: history of its published last token, or 0
  std::vector<Wanted> wanted_;
  std::vector<StoredToken> tokens_;                       // that have been wanted
  std::vector<uint64_t> page_histories_;                  // of each: its page's first token's
  std::vector<SlotPlace> places_;                         // of one message
  std::vector<std::byte> expected_key_, expected_value_;  // of one slot
  Written written_;
  uint64_t slots_read_ = 0;
};

}  // namespace kv
