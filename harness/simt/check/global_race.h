// Purpose: races between the blocks of one launch, on global memory.
// Contract: nothing orders the blocks of a grid but atomics with fences. Every granule (1, 2 or 4
// bytes, the narrowest access of the kernel) has the stamp of its last writer and last reader:
// launch tag << 20 | block, all ones as block meaning several. A stamp of another launch is stale.
// Blocks are numbered modulo 2^20 - 1; two that share a number are taken for one.
#pragma once

#include "harness/simt/check/race_stamp.h"

namespace kv::simt {

struct BlockStamp {
  static constexpr uint32_t kTagShift = 20, kTagMax = 4095;
  static constexpr uint32_t kSeveral = (1u << kTagShift) - 1;
  static constexpr uint32_t make(uint32_t tag, uint64_t block) {
    return tag << kTagShift | uint32_t(block % kSeveral);
  }
};

/// Elements that are of this launch but of another block than `me`.
KV_INLINE Stamps foreign(Stamps stamps, Stamps me) {
  const Stamps x = stamps ^ me;
  return (x != 0) & (x < (1u << BlockStamp::kTagShift));
}
KV_INLINE bool foreign(uint32_t stamp, uint32_t me) {
  const uint32_t x = stamp ^ me;
  return x != 0 && x < (1u << BlockStamp::kTagShift);
}

KV_INLINE bool global_read_four(const uint32_t* writers, uint32_t* readers, uint32_t me) {
  const Stamps mine = all_stamps(me), w = load_stamps(writers), r = load_stamps(readers);
  store_stamps(readers, mine | (foreign(r, mine) & BlockStamp::kSeveral));
  return any_set(foreign(w, mine));
}
KV_INLINE bool global_write_four(uint32_t* writers, const uint32_t* readers, uint32_t me) {
  const Stamps mine = all_stamps(me);
  const Stamps bad =
      foreign(load_stamps(writers), mine) | foreign(load_stamps(readers), mine);
  if (any_set(bad)) return true;
  store_stamps(writers, mine);
  return false;
}
KV_INLINE bool global_read_one(const uint32_t* writer, uint32_t* reader, uint32_t me) {
  *reader = foreign(*reader, me) ? me | BlockStamp::kSeveral : me;
  return foreign(*writer, me);
}
KV_INLINE bool global_write_one(uint32_t* writer, const uint32_t* reader, uint32_t me) {
  if (foreign(*writer, me) || foreign(*reader, me)) return true;
  *writer = me;
  return false;
}

}  // namespace kv::simt
