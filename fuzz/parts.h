// Purpose: a fuzzer's bytes as the choices of a generator, part by part.
// Contract: total: all bytes are an input, all inputs give choices for ever. An input is a row of
// chunks, each one byte of length and that many bytes: one for each part of a case (shape, pool,
// mask, ...), then one for each operation. A change in one chunk leaves what the others say, which
// a plain stream would not; what lies behind the end of a chunk are zeros, the simplest choices.
// split() and join() are inverse on what join() writes.
// Example:  Chunks chunks = split({data, size}); PartedSource choices(chunks); Case c =
// draw(choices);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/gen/choice_source.h"

namespace kv::fuzzing {

using Chunk = std::vector<uint8_t>;
using Chunks = std::vector<Chunk>;

inline constexpr size_t kSettingsChunks = static_cast<size_t>(Part::kOperation);
inline constexpr size_t kChunksMax = kSettingsChunks + 256;
inline constexpr size_t kChunkBytesMax = 255;

Chunks split(std::span<const uint8_t> bytes);
std::vector<uint8_t> join(const Chunks& chunks);

class PartedSource final : public ChoiceSource {
 public:
  /// `chunks` must outlive the source.
  explicit PartedSource(const Chunks& chunks) : chunks_(chunks) {}
  uint64_t below(uint64_t bound) override { return now_.below(bound); }
  void enter(Part part) override;

 private:
  const Chunks& chunks_;
  BytesSource now_ = BytesSource({});
  size_t operations_ = 0;
};

}  // namespace kv::fuzzing
