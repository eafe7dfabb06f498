// Tiles of matrices and of lanes: copies with tails, padded rows, partial warps, groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>

#include "harness/simt/programs_test/program.h"

using namespace kv::simt::programs;
namespace cg = cooperative_groups;

namespace {

__device__ unsigned shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/// The tail of a row is filled with zeros by the copy itself: of `valid` elements none is read past
/// the end.
template <bool kFaulty>
__global__ void copy_tail(const int* in, int* out, int valid) {
  __shared__ __align__(16) int tile[128];
  const int first = 4 * threadIdx.x;
  const int left = valid - first < 0 ? 0 : valid - first > 4 ? 4 : valid - first;
  const int bytes = kFaulty ? 16 : 4 * left;
  const int* from = left || kFaulty ? in + first : in;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"  //
               ::"r"(shared_address(&tile[first])),
               "l"(from), "r"(bytes)  // FAULT: tail_not_clamped
               : "memory");
  asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  for (int k = 0; k < 4; ++k) out[first + k] = tile[first + k];
}

/// Where nothing is copied, zeros must come from elsewhere.
template <bool kFaulty>
__global__ void copy_guarded(const int* in, int* positive, int valid) {
  __shared__ __align__(16) int tile[128];
  const int first = 4 * threadIdx.x;
  if (first < valid) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(&tile[first])),
                 "l"(in + first)
                 : "memory");
  } else if (!kFaulty) {
    for (int k = 0; k < 4; ++k) tile[first + k] = 0;
  }
  asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  if (tile[127 - threadIdx.x] > 0) atomicAdd(positive, 1);  // FAULT: tail_not_zeroed
}

/// Rows of 64 halves, padded against bank conflicts: to 72, of which ldmatrix can begin at each.
template <bool kFaulty>
__global__ void padded_rows(const __half* in, int* out) {
  constexpr int kPitch = kFaulty ? 66 : 72;
  __shared__ __align__(16) __half tile[16 * 72];
  for (int k = threadIdx.x; k < 16 * 64; k += 32) tile[k / 64 * kPitch + k % 64] = in[k];
  __syncwarp();
  const unsigned row = shared_address(&tile[threadIdx.x % 16 * kPitch]);
  int a, b;
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(a), "=r"(b)
               : "r"(row)  // FAULT: pitch_of_66
               : "memory");
  out[threadIdx.x] = a + b;
}

/// One buffer, filled ahead through registers: two barriers for each tile, or two buffers.
template <bool kFaulty>
__global__ void register_prefetch(const int* in, int* out, int tiles) {
  __shared__ int buffer[2][64];
  int ahead = in[threadIdx.x], sum = 0;
  for (int t = 0; t < tiles; ++t) {
    int* stage = buffer[kFaulty ? 0 : t % 2];
    stage[threadIdx.x] = ahead;  // FAULT: one_barrier_one_buffer
    __syncthreads();
    if (t + 1 < tiles) ahead = in[64 * (t + 1) + threadIdx.x];
    sum += stage[63 - threadIdx.x];  // FAULT: one_barrier_one_buffer
  }
  out[threadIdx.x] = sum;
}

/// The sum of a block of any size: warps that do not exist have no part in it.
template <bool kFaulty>
__global__ void sum_of_warps(const int* in, int* above, int n) {
  __shared__ int parts[32];
  const int i = threadIdx.x;
  int sum = i < n ? in[i] : 0;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (i % 32 == 0) parts[i / 32] = sum;
  __syncthreads();
  if (i >= 32) return;
  const int warps = kFaulty ? 32 : blockDim.x / 32;
  int total = i < warps ? parts[i] : 0;
  for (int step = 16; step > 0; step /= 2) total += __shfl_down_sync(0xffffffffu, total, step);
  if (i == 0 && total > 10) atomicAdd(above, total);  // FAULT: parts_of_absent_warps
}

/// Two warps add to the same row of outputs.
template <bool kFaulty>
__global__ void rows_of_two_warps(const float* in, float* out) {
  __shared__ float row[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) row[lane] = 0;
  __syncthreads();
  if (kFaulty) {
    row[lane] += in[threadIdx.x];  // FAULT: row_of_two_warps
  } else {
    atomicAdd(&row[lane], in[threadIdx.x]);
  }
  __syncthreads();
  if (threadIdx.x < 32) out[lane] = row[lane];
}

/// Rows of different lengths, a lane each: the lanes with short ones leave the loop early.
template <bool kFaulty>
__global__ void ragged(const int* lengths, int* out) {
  const int lane = threadIdx.x, mine = lengths[lane];
  const int longest = __reduce_max_sync(0xffffffffu, mine);
  int sum = 0;
  for (int k = 0; k < (kFaulty ? mine : longest); ++k) {
    sum += __shfl_xor_sync(0xffffffffu, k < mine ? k : 0, 1);  // FAULT: ragged_loop
  }
  __syncwarp();
  out[lane] = sum;  // FAULT: ragged_loop
}

/// Tiles of 16 lanes hand over through shared memory.
template <bool kFaulty>
__global__ void tile_of_sixteen(const int* in, int* out) {
  __shared__ int box[64];
  const auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  box[threadIdx.x] = in[threadIdx.x];  // FAULT: tile_not_synchronised
  if (!kFaulty) tile.sync();
  const int base = threadIdx.x / 16 * 16;
  const int mirrored = box[base + 15 - tile.thread_rank()];  // FAULT: tile_not_synchronised
  out[threadIdx.x] = mirrored + cg::reduce(tile, mirrored, cg::plus<int>());
}

/// Lanes that are here together take one ticket, by their leader.
template <bool kFaulty>
__global__ void coalesced_tickets(const int* in, int* count, int* out) {
  if (in[threadIdx.x] % 3 != 0) return;
  const auto group = cg::coalesced_threads();
  int first = 0;
  if (group.thread_rank() == 0) {
    if (kFaulty) {
      first = *count;                 // FAULT: tickets_without_atomic
      *count = first + group.size();  // FAULT: tickets_without_atomic
    } else {
      first = atomicAdd(count, group.size());
    }
  }
  first = group.shfl(first, 0);
  out[first + group.thread_rank()] = in[threadIdx.x];  // FAULT: tickets_without_atomic
}

/// The caches of layers follow each other: from 2^31 elements on a product of ints has wrapped.
template <bool kFaulty>
__global__ void touch_page(uint8_t* cache, const int* table, int page_bytes, int pages) {
  const int page = table[threadIdx.x], layer = 3;
  const auto page_of_layer =
      kFaulty ? static_cast<int64_t>(
                    static_cast<int>(static_cast<unsigned>(layer * pages + page) * page_bytes))
              : int64_t{layer * pages + page} * page_bytes;
  cache[page_of_layer] = static_cast<uint8_t>(page);  // FAULT: page_of_32_bits
}

}  // namespace

KV_PROGRAM(tail_not_clamped, KV_SIMT_KIND_OUT_OF_BOUNDS) {
  DeviceArray<int> in(counting<int>(50)), out(128);
  KV_LAUNCH(copy_tail, 1, 32, 0, in.get(), out.get(), 50);
  const auto got = out.read();
  return got[49] == 49 && got[50] == 0 && got[127] == 0;
}

KV_PROGRAM(tail_not_zeroed, KV_SIMT_KIND_UNDEFINED) {
  DeviceArray<int> in(counting<int>(100)), positive(std::vector<int>{0});
  KV_LAUNCH(copy_guarded, 1, 32, 0, in.get(), positive.get(), 100);
  return positive.read()[0] == 4;
}

KV_PROGRAM(pitch_of_66, KV_SIMT_KIND_MISALIGNED) {
  DeviceArray<__half> in(std::vector<__half>(16 * 64, __float2half(0.0f)));
  DeviceArray<int> out(32);
  KV_LAUNCH(padded_rows, 1, 32, 0, in.get(), out.get());
  return out.read() == std::vector<int>(32, 0);
}

KV_PROGRAM(one_barrier_one_buffer, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(256)), out(64);
  KV_LAUNCH(register_prefetch, 1, 64, 0, in.get(), out.get(), 4);
  return out.read()[63] == 64 + 128 + 192;
}

KV_PROGRAM(parts_of_absent_warps, KV_SIMT_KIND_UNDEFINED) {
  DeviceArray<int> in(counting<int>(96)), above(std::vector<int>{0});
  KV_LAUNCH(sum_of_warps, 1, 96, 0, in.get(), above.get(), 90);
  return above.read()[0] == 89 * 45;
}

KV_PROGRAM(row_of_two_warps, KV_SIMT_KIND_RACE) {
  DeviceArray<float> in(counting<float>(64)), out(32);
  KV_LAUNCH(rows_of_two_warps, 1, 64, 0, in.get(), out.get());
  return out.read()[31] == 31 + 63;
}

KV_PROGRAM(ragged_loop, KV_SIMT_KIND_BARRIER) {
  DeviceArray<int> lengths(counting<int>(32)), out(32);
  KV_LAUNCH(ragged, 1, 32, 0, lengths.get(), out.get());
  return out.read()[0] == 0;
}

KV_PROGRAM(tile_not_synchronised, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(64)), out(64);
  KV_LAUNCH(tile_of_sixteen, 1, 64, 0, in.get(), out.get());
  return out.read()[0] == 15 + 120;
}

KV_PROGRAM(tickets_without_atomic, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(32)), count(std::vector<int>{0}), out(32);
  KV_LAUNCH(coalesced_tickets, 2, 32, 0, in.get(), count.get(), out.get());
  return count.read()[0] == 22;
}

KV_PROGRAM(page_of_32_bits, KV_SIMT_KIND_OUT_OF_BOUNDS) {
  constexpr int kPageBytes = 1 << 26, kPages = 16;
  uint8_t* cache = nullptr;
  cudaMalloc(&cache, size_t{4} * kPages * kPageBytes);
  DeviceArray<int> table(counting<int>(8));
  KV_LAUNCH(touch_page, 1, 8, 0, cache, table.get(), kPageBytes, kPages);
  uint8_t last = 0;
  cudaMemcpy(&last, cache + size_t{3 * kPages + 7} * kPageBytes, 1, cudaMemcpyDeviceToHost);
  cudaFree(cache);
  return last == 7;
}
