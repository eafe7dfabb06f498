// Purpose: the identity of a token, so that equal prefixes share bytes and diverged ones never do.
// Contract: a request's tokens come from its own stream, except its first `prefix_tokens`, which
// come from the request that it names. The history of token i is a hash of everything before it,
// the stream that owns it and i; requests with different side inputs share no history.
// Example:  Streams s(seed); s.admit(op); std::vector<uint64_t> h; s.extend(request, 0, 5, h);
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "harness/case/case.h"

namespace kv {

class Streams {
 public:
  explicit Streams(uint64_t data_seed) : seed_(data_seed) {}

  /// The operation must be lawful: a new request, its prefix_of admitted before.
  void admit(const op::Admit& admit);

  /// Identity of the empty path of `request`, from which its first token's is hashed.
  uint64_t root(RequestId request) const;

  /// Calls `sink(history)` for each of the tokens [first, first + count), given the history of
  /// token first - 1 (or root).
  template <class Sink>
  void extend(RequestId request, uint64_t first, uint64_t count, uint64_t history,
              Sink sink) const {
    for (uint64_t i = first; i < first + count;) {
      const Segment segment = segment_at(request, i);
      for (; i < first + count && i < segment.end; ++i) {
        history = next(history, segment.stream, i);
        sink(history);
      }
    }
  }

 private:
  struct Stream {
    uint64_t seed = 0;
    uint64_t side_input = 0;
    RequestId prefix_of;
    uint64_t prefix_tokens = 0;
  };
  struct Segment {
    uint64_t stream = 0;
    uint64_t end = 0;  // first token index that belongs to another stream
  };

  Segment segment_at(RequestId request, uint64_t token) const;
  static uint64_t next(uint64_t history, uint64_t stream, uint64_t token);

  uint64_t seed_;
  std::map<RequestId, Stream> streams_;
};

/// Identity of a PAD slot, or of a query row that stands before the first slot (slot < 0).
uint64_t tokenless_history(uint64_t data_seed, RequestId request, int64_t slot);

}  // namespace kv
