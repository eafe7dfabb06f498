// Races inside a block, on shared memory.
#include "harness/simt/programs_test/program.h"

using namespace kv::simt::programs;

namespace {

template <bool kFaulty>
__global__ void neighbour(const int* in, int* out) {
  __shared__ int tile[128];
  tile[threadIdx.x] = in[threadIdx.x];  // FAULT: sync_after_load
  if (!kFaulty) __syncthreads();
  out[threadIdx.x] = tile[(threadIdx.x + 32) % 128];  // FAULT: sync_after_load
}

template <bool kFaulty>
__global__ void column_sums(const int* in, int* out, int tiles) {
  __shared__ int tile[128];
  int sum = 0;
  for (int t = 0; t < tiles; ++t) {
    tile[threadIdx.x] = in[128 * t + threadIdx.x];  // FAULT: buffer_reuse
    __syncthreads();
    sum += tile[(threadIdx.x + 64) % 128];  // FAULT: buffer_reuse
    if (!kFaulty) __syncthreads();          // before the next tile overwrites this one
  }
  out[threadIdx.x] = sum;
}

template <bool kFaulty>
__global__ void block_sum(const int* in, int* out) {
  __shared__ int part[128];
  part[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      part[threadIdx.x] += part[threadIdx.x + half];  // FAULT: reduction
    }
    if (!kFaulty || half <= 32) __syncthreads();
  }
  if (threadIdx.x == 0) *out = part[0];
}

/// One warp, no block barrier: legal with the warp's own.
template <bool kFaulty>
__global__ void warp_scan(const int* in, int* out) {
  __shared__ int part[32];
  const int lane = threadIdx.x;
  part[lane] = in[lane];  // FAULT: warp_synchronous
  if (!kFaulty) __syncwarp();
  int sum = part[lane];
  for (int step = 1; step < 32; step *= 2) {
    const int before = lane >= step ? part[lane - step] : 0;  // FAULT: warp_synchronous
    if (!kFaulty) __syncwarp();
    sum += before;
    part[lane] = sum;  // FAULT: warp_synchronous
    if (!kFaulty) __syncwarp();
  }
  out[lane] = sum;
}

/// Neighbouring halves of a word are different memory.
template <bool kFaulty>
__global__ void write_halves(uint16_t* out) {
  __shared__ uint16_t halves[128];
  const int slot = kFaulty ? threadIdx.x / 2 * 2 : threadIdx.x;
  halves[slot] = static_cast<uint16_t>(threadIdx.x);  // FAULT: neighbouring_halves
  __syncthreads();
  out[threadIdx.x] = halves[slot];
}

template <bool kFaulty>
__global__ void shared_histogram(const int* in, int* out) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  const int bin = in[threadIdx.x] & 7;
  if (kFaulty) {
    bins[bin] += 1;  // FAULT: shared_histogram_without_atomics
  } else {
    atomicAdd(&bins[bin], 1);
  }
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = bins[threadIdx.x];
}

/// Two halves of a block hand over through a named barrier that only they use.
template <bool kFaulty>
__global__ void hand_over(const int* in, int* out) {
  __shared__ int box[64];
  const int i = threadIdx.x % 64;
  if (threadIdx.x < 64) {
    box[i] = in[i];  // FAULT: named_barrier
    if (!kFaulty) asm volatile("bar.arrive 1, 128;" ::: "memory");
  } else {
    if (!kFaulty) asm volatile("bar.sync 1, 128;" ::: "memory");
    out[i] = box[63 - i];  // FAULT: named_barrier
  }
}

}  // namespace

KV_PROGRAM(sync_after_load, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(128)), out(128);
  KV_LAUNCH(neighbour, 1, 128, 0, in.get(), out.get());
  const auto got = out.read();
  return got[0] == 32 && got[127] == 31;
}

KV_PROGRAM(buffer_reuse, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(512)), out(128);
  KV_LAUNCH(column_sums, 1, 128, 0, in.get(), out.get(), 4);
  return out.read()[0] == 64 + 192 + 320 + 448;
}

KV_PROGRAM(reduction, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(128)), out(1);
  KV_LAUNCH(block_sum, 1, 128, 0, in.get(), out.get());
  return out.read()[0] == 127 * 64;
}

KV_PROGRAM(warp_synchronous, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(32)), out(32);
  KV_LAUNCH(warp_scan, 1, 32, 0, in.get(), out.get());
  return out.read()[31] == 31 * 16;
}

KV_PROGRAM(neighbouring_halves, KV_SIMT_KIND_RACE) {
  DeviceArray<uint16_t> out(128);
  KV_LAUNCH(write_halves, 1, 128, 0, out.get());
  return out.read() == counting<uint16_t>(128);
}

KV_PROGRAM(shared_histogram_without_atomics, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(128)), out(8);
  KV_LAUNCH(shared_histogram, 1, 128, 0, in.get(), out.get());
  return out.read() == std::vector<int>(8, 16);
}

KV_PROGRAM(named_barrier, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(64)), out(64);
  KV_LAUNCH(hand_over, 1, 128, 0, in.get(), out.get());
  return out.read()[0] == 63;
}
