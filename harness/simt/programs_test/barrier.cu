// Barriers that not everybody reaches, and lanes that are not there.
#include "harness/simt/programs_test/program.h"

using namespace kv::simt::programs;

namespace {

template <bool kFaulty>
__global__ void barrier_in_branch(const int* in, int* out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  if (!kFaulty || (in[threadIdx.x] & 1) == 0) {
    __syncthreads();  // FAULT: divergent_barrier
  }
  out[threadIdx.x] = in[threadIdx.x];
}

template <bool kFaulty>
__global__ void barrier_counts(const int* in, int* out) {
  const int rounds = kFaulty && threadIdx.x >= 32 ? 1 : 2;
  for (int i = 0; i < rounds; ++i) {
    // Warp 1 goes on to another barrier while warp 0 still waits at this one.
    asm volatile("bar.sync 0;" ::: "memory");  // FAULT: deadlock
  }
  if (kFaulty && threadIdx.x >= 32) {
    asm volatile("bar.sync 1, 64;" ::: "memory");  // FAULT: deadlock
  }
  out[threadIdx.x] = in[threadIdx.x];
}

template <bool kFaulty>
__global__ void shuffle_half(const int* in, int* out) {
  const int lane = threadIdx.x;
  int value = in[lane];
  if (lane < 16) {
    const unsigned mask = kFaulty ? 0xffffffffu : 0x0000ffffu;
    value += __shfl_xor_sync(mask, value, 1);  // FAULT: shuffle_with_absent_lanes
  }
  __syncwarp();  // the other lanes have not left: they wait here
  out[lane] = value;
}

/// Tiles of eight lanes, which name themselves: four masks in one instruction. Each tile adds up
/// its lanes, votes and meets.
template <bool kFaulty>
__global__ void tiles(const int* in, int* out) {
  const unsigned lane = threadIdx.x, tile = lane / 8, wanted = kFaulty ? tile ^ 1 : tile;
  const unsigned mask = 0xffu << (8 * wanted);
  int sum = in[lane];
  for (int step = 4; step > 0; step /= 2) {
    sum += __shfl_xor_sync(mask, sum, step, 8);  // FAULT: tiles_of_others
  }
  const int odd = __popc(__ballot_sync(mask, in[lane] & 1));     // FAULT: tiles_of_others
  const bool first = __any_sync(mask, in[lane] == 0);            // FAULT: tiles_of_others
  const int most = __reduce_max_sync(mask, in[lane]);            // FAULT: tiles_of_others
  __syncwarp(mask);                                              // FAULT: tiles_of_others
  out[lane] = sum + 1000 * odd + 10000 * first + 100000 * most;  // FAULT: tiles_of_others
}

template <bool kFaulty>
__global__ void read_absent_lane(const int* in, int* fives) {
  const int lane = threadIdx.x;
  if (lane >= 16) return;
  int value = in[lane];
  const int from = kFaulty ? 20 : 5;
  value = __shfl_sync(0x0000ffffu, value, from);  // FAULT: shuffle_from_absent_lane
  if (value == 5) atomicAdd(fives, 1);            // FAULT: shuffle_from_absent_lane
}

template <bool kFaulty>
__global__ void vote(const int* in, int* out) {
  const int lane = threadIdx.x;
  unsigned ballot = 0;
  if (!kFaulty || lane != 7) {
    ballot = __ballot_sync(0xffffffffu, in[lane] > 10);  // FAULT: vote_with_absent_lane
  }
  __syncwarp();
  out[lane] = static_cast<int>(ballot);
}

}  // namespace

KV_PROGRAM(tiles_of_others, KV_SIMT_KIND_BARRIER) {
  DeviceArray<int> in(counting<int>(32)), out(32);
  KV_LAUNCH(tiles, 1, 32, 0, in.get(), out.get());
  std::vector<int> want(32);
  for (int lane = 0; lane < 32; ++lane) {
    const int tile = lane / 8;
    want[lane] = 28 + 64 * tile + 4000 + (tile == 0 ? 10000 : 0) + 100000 * (8 * tile + 7);
  }
  return out.read() == want;
}

KV_PROGRAM(divergent_barrier, KV_SIMT_KIND_BARRIER) {
  DeviceArray<int> in(counting<int>(64)), out(64);
  KV_LAUNCH(barrier_in_branch, 1, 64, 0, in.get(), out.get());
  return out.read() == counting<int>(64);
}

KV_PROGRAM(deadlock, KV_SIMT_KIND_BARRIER) {
  DeviceArray<int> in(counting<int>(64)), out(64);
  KV_LAUNCH(barrier_counts, 1, 64, 0, in.get(), out.get());
  return out.read() == counting<int>(64);
}

KV_PROGRAM(shuffle_with_absent_lanes, KV_SIMT_KIND_BARRIER) {
  DeviceArray<int> in(counting<int>(32)), out(32);
  KV_LAUNCH(shuffle_half, 1, 32, 0, in.get(), out.get());
  const auto got = out.read();
  return got[0] == 1 && got[15] == 29 && got[16] == 16;
}

KV_PROGRAM(shuffle_from_absent_lane, KV_SIMT_KIND_BARRIER) {
  DeviceArray<int> in(counting<int>(32)), fives(std::vector<int>{0});
  KV_LAUNCH(read_absent_lane, 1, 32, 0, in.get(), fives.get());
  return fives.read()[0] == 16;
}

KV_PROGRAM(vote_with_absent_lane, KV_SIMT_KIND_BARRIER) {
  DeviceArray<int> in(counting<int>(32)), out(32);
  KV_LAUNCH(vote, 1, 32, 0, in.get(), out.get());
  return out.read() == std::vector<int>(32, static_cast<int>(0xfffff800u));
}
