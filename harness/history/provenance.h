// Purpose: does every slot hold its own token's bytes, K and V, in each layer? And does every
// published prefix hold the bytes of the tokens that its key names?
// Contract: bytes are compared with the content function, without floating point; the cache must
// store K and V as they are given (neither rotated nor quantised). Slots that a window has let go
// are skipped. A read that fails is a finding, too.
// Example:  if (auto found = provenance.check_slots(model, state, touched)) return found;
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "harness/engine/content.h"
#include "harness/engine/engine.h"
#include "harness/history/finding.h"
#include "harness/history/model.h"

namespace kv {

class Provenance {
 public:
  Provenance(const Case& c, Engine& engine);

  /// `state`: of the cache that the slots are in.
  MaybeFinding check_slots(const Model& model, const EngineState& state, const Touched& touched);
  /// Those that are new or have another page since the last call; all of them with `everything`.
  MaybeFinding check_prefixes(const EngineState& state, bool everything);

  uint64_t slots_read() const { return slots_read_; }

 private:
  struct Expected {
    StoredToken token;
    ContentLayer layer;
  };
  MaybeFinding compare_all(CacheKind cache);  // what has been wanted
  MaybeFinding compare(CacheKind cache, std::span<const SlotPlace> places,
                       std::span<const Expected> expected);
  void want(const SlotPlace& place, const Expected& expected);

  const Case& case_;
  Engine& engine_;
  Content content_;
  std::vector<CacheGroup> groups_;
  /// Where the tokens of a page lead from a prefix.
  struct Path {
    PageTokens tokens;  // kept, so that its address stays its own
    uint64_t before = 0, slot = 0, after = 0;
    uint64_t check = 0;  // the last one that met it
  };
  uint64_t follow(const PrefixState& prefix, uint64_t before, uint64_t slot);
  void want_page(const PrefixState& prefix, uint32_t group, uint64_t before, uint64_t slot);
  void forget_paths(size_t prefixes);

  std::unordered_map<const void*, Path> paths_;  // by the address of the tokens; looked up only
  uint64_t checks_ = 0;
  std::unordered_map<uint32_t, uint64_t> verified_;  // page -> history of its published last token
  std::vector<SlotPlace> places_;
  std::vector<Expected> expected_;
  std::vector<std::byte> buffer_;
  uint64_t slots_read_ = 0;
};

}  // namespace kv
