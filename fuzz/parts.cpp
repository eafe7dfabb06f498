#include "fuzz/parts.h"

#include <algorithm>

namespace kv::fuzzing {

Chunks split(std::span<const uint8_t> bytes) {
  Chunks chunks;
  while (!bytes.empty() && chunks.size() < kChunksMax) {
    const size_t length = std::min<size_t>(bytes[0], bytes.size() - 1);
    const auto chunk = bytes.subspan(1, length);
    chunks.emplace_back(chunk.begin(), chunk.end());
    bytes = bytes.subspan(1 + length);
  }
  return chunks;
}

std::vector<uint8_t> join(const Chunks& chunks) {
  std::vector<uint8_t> bytes;
  for (const Chunk& chunk : chunks) {
    const size_t length = std::min(chunk.size(), kChunkBytesMax);
    bytes.push_back(static_cast<uint8_t>(length));
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + static_cast<ptrdiff_t>(length));
  }
  return bytes;
}

void PartedSource::enter(Part part) {
  size_t index = static_cast<size_t>(part);
  if (part == Part::kOperation) index += operations_++;
  now_ = BytesSource(index < chunks_.size() ? std::span<const uint8_t>(chunks_[index])
                                            : std::span<const uint8_t>());
}

}  // namespace kv::fuzzing
