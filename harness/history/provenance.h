// Purpose: does every slot hold its own token's bytes, K and V, in each layer? And does every
// published prefix hold the bytes of the tokens that its key names?
// Contract: bytes are compared with the content function, without floating point; the cache must
// store K and V as they are given (neither rotated nor quantised). Slots that a window has let go
// are skipped. A read that fails is a finding, too.
// Example:  if (auto found = provenance.check_slots(model, state, touched)) return found;
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "harness/history/content.h"
#include "harness/history/engine.h"
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
  MaybeFinding compare(CacheKind cache, const std::vector<SlotPlace>& places,
                       const std::vector<Expected>& expected);
  void want(const SlotPlace& place, const Expected& expected);

  const Case& case_;
  Engine& engine_;
  Content content_;
  std::vector<CacheGroup> groups_;
  std::map<uint32_t, uint64_t> verified_;  // page -> history of its published last token
  std::vector<SlotPlace> places_;
  std::vector<Expected> expected_;
  std::vector<std::byte> buffer_;
  uint64_t slots_read_ = 0;
};

}  // namespace kv
