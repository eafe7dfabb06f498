// Purpose: the same tokens give the same bits. Remembers what every query row gave, by all that its
// attention may depend on, and holds every later row with the same key against it: in the same
// history (forks, beams, what is taken back and said again) and in its twin (twin.h).
// Contract: a key is made of the tokens that the query sees, their positions, the layer and the
// model; where the plugin does not promise KV_PROMISE_CHUNK also of how the row was asked. What
// else is in the batch, which pages are used and what happened before is left out: an Echo is for
// plugins that promise KV_PROMISE_BATCH and KV_PROMISE_PAGE. The first row stays.
// Example:  Echo echo; if (auto found = echo.hear(key, row, place)) return found;
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/history/finding.h"

namespace kv {

/// What a plugin declares of its outputs (kv_conventions).
struct Conventions {
  uint32_t lse_base = 0, lse_layout = 0, promises = 0;  // KV_LSE_*, KV_PROMISE_*
};
/// Whether equal tokens must give equal bits whatever else happens.
bool promises_echo(const Conventions& conventions);

/// One query of one layer: all heads.
struct EchoRow {
  std::span<const std::byte> output;
  std::vector<float> lses;  // [query_heads]
};

/// Where a row came from.
struct EchoPlace {
  RequestId request = {};
  uint64_t slot = 0, step = 0;
  uint32_t layer = 0;
  bool draft = false;
};

class Echo {
 public:
  MaybeFinding hear(uint64_t key, const EchoRow& row, const EchoPlace& place);
  /// What is heard from now on is of the twin of this name.
  void begin_twin(std::string name) { twin_ = std::move(name); }

  /// Rows that met an equal key of the same history; and of the other one.
  uint64_t repeats() const { return repeats_; }
  uint64_t shared() const { return shared_; }

 private:
  struct Heard {
    std::vector<std::byte> output;
    std::vector<float> lses;
    EchoPlace place;
    bool twin = false;
  };

  std::map<uint64_t, Heard> heard_;
  std::string twin_;
  uint64_t repeats_ = 0, shared_ = 0;
};

}  // namespace kv
