// Purpose: races between the blocks of one launch, on global memory.
//
// Model: as for shared memory (shared_race.h) with blocks as threads. Nothing orders the blocks of
// a grid but atomics and their like: a strong write publishes the writer's clock at its address, a
// strong read takes it over. Every granule (1, 2 or 4 bytes, the narrowest access of the kernel)
// has the stamp of its last writer and last reader: clock << 18 | strong << 17 | several << 16 |
// block; of several readers it names one of those with the latest clock. Two strong accesses do not
// race. Clocks grow from launch to launch: what lies at or below a launch's `floor` is older than
// the launch, and ordered before it.
//
// Nearly all accesses are of whole chunks of 16 bytes, by one lane or by neighbours. A chunk has a
// pair of stamps that stand for those of each of its granules until somebody touches less than all
// of it, or strongly: then it is split for the rest of the launch, and its granules have their own.
//
// Contract: blocks are numbered modulo 2^16 - 1; two that share a number are taken for one.
#pragma once

#include "harness/simt/check/race_stamp.h"

namespace kv::simt {

struct BlockStamp {
  static constexpr uint32_t kClockShift = 18, kClockMax = (1u << 14) - 1;
  static constexpr uint32_t kBlock = (1u << 16) - 1;  // mask of the number
  static constexpr uint32_t kSeveral = 1u << 16;      // blocks
  static constexpr uint32_t kWho = kBlock | kSeveral;
  static constexpr uint32_t kStrong = 1u << 17;  // by an atomic, volatile or relaxed access
  static constexpr uint32_t kPublishMax = 120;   // clocks of one block in a launch
  static constexpr uint32_t make(uint32_t clock, uint64_t block) {
    return clock << kClockShift | uint32_t(block % kBlock);
  }
  static constexpr uint32_t floor(uint32_t clock) { return clock << kClockShift | kStrong | kWho; }
};

/// Stamps of this launch and of another block than `me`.
KV_INLINE Stamps foreign(Stamps stamps, uint32_t me, uint32_t floor) {
  return (stamps > floor) & (((stamps ^ me) & BlockStamp::kWho) != 0);
}
KV_INLINE bool foreign(uint32_t stamp, uint32_t me, uint32_t floor) {
  return stamp > floor && ((stamp ^ me) & BlockStamp::kWho) != 0;
}

KV_INLINE bool global_read_four(const uint32_t* writers, uint32_t* readers, uint32_t me,
                                uint32_t floor) {
  const Stamps mine = all_stamps(me), w = load_stamps(writers), r = load_stamps(readers);
  const Stamps bad = foreign(w, me, floor), others = foreign(r, me, floor);
  if (!any_set(bad | others)) {
    store_stamps(readers, mine);
    return false;
  }
  const Stamps several = (r > mine ? r : mine) | BlockStamp::kSeveral;
  store_stamps(readers, others ? several : mine);
  return any_set(bad);
}
KV_INLINE bool global_write_four(uint32_t* writers, const uint32_t* readers, uint32_t me,
                                 uint32_t floor) {
  const Stamps bad =
      foreign(load_stamps(writers), me, floor) | foreign(load_stamps(readers), me, floor);
  if (any_set(bad)) return true;
  store_stamps(writers, all_stamps(me));
  return false;
}
KV_INLINE bool global_read_one(const uint32_t* writer, uint32_t* reader, uint32_t me,
                               uint32_t floor) {
  const uint32_t r = *reader;
  *reader = foreign(r, me, floor) ? (r > me ? r : me) | BlockStamp::kSeveral : me;
  return foreign(*writer, me, floor);
}
KV_INLINE bool global_write_one(uint32_t* writer, const uint32_t* reader, uint32_t me,
                                uint32_t floor) {
  if (foreign(*writer, me, floor) || foreign(*reader, me, floor)) return true;
  *writer = me;
  return false;
}

/// The stamps of a chunk, or twice the mark of a split one. Chunks of older launches are whole.
struct ChunkStamps {
  static constexpr uint32_t kShift = 4;  // 16 bytes
  static constexpr uint32_t kSplit = BlockStamp::kStrong | BlockStamp::kWho;
  uint32_t writer = 0, reader = 0;
};

KV_INLINE bool is_split(const ChunkStamps& chunk, uint32_t floor) {
  return chunk.writer > floor && (chunk.writer & ChunkStamps::kSplit) == ChunkStamps::kSplit;
}

/// Gives the granules, `granules` of them at `writers` and `readers`, the stamps of their chunk.
KV_INLINE void split_chunk(ChunkStamps* chunk, uint32_t* writers, uint32_t* readers,
                           uint32_t granules, uint32_t me, uint32_t floor) {
  const uint32_t w = chunk->writer > floor ? chunk->writer : 0;
  const uint32_t r = chunk->reader > floor ? chunk->reader : 0;
  for (uint32_t g = 0; g < granules; g += 4) {
    store_stamps(writers + g, all_stamps(w));
    store_stamps(readers + g, all_stamps(r));
  }
  chunk->writer = chunk->reader = me | ChunkStamps::kSplit;
}

/// Settles an access to all of a chunk. True: it is split, or perhaps races; nothing is changed.
template <bool kWrite>
KV_INLINE bool touch_chunk(ChunkStamps* chunk, uint32_t me, uint32_t floor) {
  const bool other = foreign(chunk->reader, me, floor);
  if (foreign(chunk->writer, me, floor) || (kWrite && other)) return true;
  if (kWrite) {
    chunk->writer = me;
  } else {
    const uint32_t r = chunk->reader;
    chunk->reader = other ? (r > me ? r : me) | BlockStamp::kSeveral : me;
  }
  return false;
}

/// The same for two neighbours: true if one of them is not settled; then nothing is changed.
template <bool kWrite>
KV_INLINE bool touch_two_chunks(ChunkStamps* chunks, uint32_t me, uint32_t floor) {
  auto* const stamps = reinterpret_cast<uint32_t*>(chunks);
  const Stamps both = load_stamps(stamps), mine = all_stamps(me), writer = {~0u, 0, ~0u, 0};
  const Stamps others = foreign(both, me, floor);
  Stamps next = mine;
  if (any_set(others)) {
    if (kWrite || any_set(others & writer)) return true;
    next = others ? (both > mine ? both : mine) | BlockStamp::kSeveral : mine;
  }
  const Stamps changed = kWrite ? writer : ~writer;
  store_stamps(stamps, (next & changed) | (both & ~changed));
  return false;
}

}  // namespace kv::simt
