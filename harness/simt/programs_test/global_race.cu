// Races between the blocks of a grid, on global memory.
#include <cooperative_groups.h>
#include <cuda_bf16.h>

#include "harness/simt/programs_test/program.h"

using namespace kv::simt::programs;

namespace {

template <bool kFaulty>
__global__ void histogram(const int* in, int* bins) {
  const int bin = in[blockIdx.x * blockDim.x + threadIdx.x] & 31;
  if (kFaulty) {
    bins[bin] += 1;  // FAULT: histogram_without_atomics
  } else {
    atomicAdd(&bins[bin], 1);
  }
}

/// The block that takes the last ticket adds up what all have written.
template <bool kFaulty>
__global__ void last_block_sum(const int* in, int* parts, unsigned* tickets, int* out) {
  __shared__ bool last;
  int sum = 0;
  for (int i = 0; i < 8; ++i) sum += in[8 * blockIdx.x + i];
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sum;  // FAULT: sum_without_ticket
    __threadfence();
    const unsigned ticket = atomicAdd(tickets, 1u);
    last = kFaulty ? blockIdx.x == 0 : ticket == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  __threadfence();
  int total = 0;
  for (int b = 0; b < gridDim.x; ++b) total += parts[b];  // FAULT: sum_without_ticket
  *out = total;
}

/// Block 1 waits until block 0 has published its word.
template <bool kFaulty>
__global__ void publish(int* word, volatile int* flag, int* out) {
  if (blockIdx.x == 0) {
    *word = 42;  // FAULT: read_before_flag
    __threadfence();
    *flag = 1;
  } else {
    if (!kFaulty) {
      while (*flag == 0) {
      }
      __threadfence();
    }
    *out = *word;  // FAULT: read_before_flag
  }
}

/// An atomic is no fence: it may be seen before the word is.
template <bool kFaulty>
__global__ void publish_by_atomic(int* word, int* flag, int* out) {
  if (blockIdx.x == 0) {
    *word = 42;  // FAULT: atomic_without_fence
    if (!kFaulty) __threadfence();
    atomicExch(flag, 1);
  } else {
    while (atomicAdd(flag, 0) == 0) {
    }
    __threadfence();
    *out = *word;  // FAULT: atomic_without_fence
  }
}

/// A fence of the block's scope does not reach the other block; a release does.
template <bool kFaulty>
__global__ void publish_by_release(int* word, int* flag, int* out) {
  if (blockIdx.x == 0) {
    *word = 42;  // FAULT: fence_too_narrow
    if (kFaulty) {
      __threadfence_block();
      atomicAdd(flag, 1);
    } else {
      asm volatile("red.release.gpu.global.add.s32 [%0], 1;" ::"l"(flag) : "memory");
    }
  } else {
    while (atomicAdd(flag, 0) == 0) {
    }
    __threadfence();
    *out = *word;  // FAULT: fence_too_narrow
  }
}

/// The loop of the programming guide: what is read before the swap is what the swap expects.
template <bool kFaulty>
__global__ void add_by_swap(const int* in, unsigned* sum, unsigned* out) {
  const unsigned more = in[blockIdx.x];
  unsigned old = *sum, assumed;
  do {
    assumed = old;
    old = atomicCAS(sum, assumed, assumed + more);  // FAULT: read_beside_swap
  } while (old != assumed);
  out[blockIdx.x] = kFaulty ? *sum : old;  // FAULT: read_beside_swap
}

/// A swap that expects a constant says nothing of what was read before it.
template <bool kFaulty>
__global__ void claim(unsigned* owner, unsigned* out) {
  const unsigned free = kFaulty ? *owner : atomicAdd(owner, 0);  // FAULT: read_before_claim
  if (free == 0) out[blockIdx.x] = atomicCAS(owner, 0u, blockIdx.x + 1);
}

/// The toolkit's addition of two bfloat16, a loop of its own before sm_90.
template <bool kFaulty>
__global__ void add_pairs(__nv_bfloat162* sum) {
  const __nv_bfloat162 one = __floats2bfloat162_rn(1, 2);
  if (kFaulty) {
    *sum = __hadd2(*sum, one);  // FAULT: pairs_without_atomic
  } else {
    atomicAdd(sum, one);
  }
}

template <bool kFaulty>
__global__ void two_phases(const int* in, int* middle, int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int n = gridDim.x * blockDim.x;
  middle[i] = 2 * in[i];  // FAULT: grid_sync
  if (!kFaulty) cooperative_groups::this_grid().sync();
  out[i] = middle[n - 1 - i];  // FAULT: grid_sync
}

template <bool kFaulty>
__global__ void scatter(int* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int slot = kFaulty ? i % 96 : i;  // the fourth block meets the first
  out[slot] = i;                          // FAULT: overlapping_blocks
}

/// Every lane reads the same word.
template <bool kFaulty>
__global__ void share_word(int* word, int* out) {
  if (kFaulty && blockIdx.x == 1 && threadIdx.x == 0) *word = 7;  // FAULT: word_of_all_lanes
  out[blockIdx.x * blockDim.x + threadIdx.x] = *word;             // FAULT: word_of_all_lanes
}

}  // namespace

KV_PROGRAM(histogram_without_atomics, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(128)), bins(std::vector<int>(32, 0));
  KV_LAUNCH(histogram, 4, 32, 0, in.get(), bins.get());
  return bins.read() == std::vector<int>(32, 4);
}

KV_PROGRAM(sum_without_ticket, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(64)), parts(std::vector<int>(8, 0)), out(1);
  DeviceArray<unsigned> tickets(std::vector<unsigned>{0});
  KV_LAUNCH(last_block_sum, 8, 32, 0, in.get(), parts.get(), tickets.get(), out.get());
  return out.read()[0] == 63 * 32;
}

KV_PROGRAM(read_before_flag, KV_SIMT_KIND_RACE) {
  DeviceArray<int> word(std::vector<int>{0}), flag(std::vector<int>{0}), out(1);
  KV_LAUNCH(publish, 2, 1, 0, word.get(), flag.get(), out.get());
  return out.read()[0] == 42;
}

KV_PROGRAM(atomic_without_fence, KV_SIMT_KIND_RACE) {
  DeviceArray<int> word(std::vector<int>{0}), flag(std::vector<int>{0}), out(1);
  KV_LAUNCH(publish_by_atomic, 2, 1, 0, word.get(), flag.get(), out.get());
  return out.read()[0] == 42;
}

KV_PROGRAM(fence_too_narrow, KV_SIMT_KIND_RACE) {
  DeviceArray<int> word(std::vector<int>{0}), flag(std::vector<int>{0}), out(1);
  KV_LAUNCH(publish_by_release, 2, 1, 0, word.get(), flag.get(), out.get());
  return out.read()[0] == 42;
}

KV_PROGRAM(read_beside_swap, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(8));
  DeviceArray<unsigned> sum(std::vector<unsigned>{0}), out(8);
  KV_LAUNCH(add_by_swap, 8, 1, 0, in.get(), sum.get(), out.get());
  return sum.read()[0] == 28;
}

KV_PROGRAM(read_before_claim, KV_SIMT_KIND_RACE) {
  DeviceArray<unsigned> owner(std::vector<unsigned>{0}), out(std::vector<unsigned>(4, 9));
  KV_LAUNCH(claim, 4, 1, 0, owner.get(), out.get());
  const unsigned got = owner.read()[0];
  return got >= 1 && got <= 4;
}

KV_PROGRAM(pairs_without_atomic, KV_SIMT_KIND_RACE) {
  DeviceArray<__nv_bfloat162> sum(std::vector<__nv_bfloat162>{__floats2bfloat162_rn(0, 0)});
  KV_LAUNCH(add_pairs, 4, 1, 0, sum.get());
  const float2 got = __bfloat1622float2(sum.read()[0]);
  return got.x == 4 && got.y == 8;
}

KV_PROGRAM(grid_sync, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(128)), middle(std::vector<int>(128, 0)), out(128);
  const int* in_argument = in.get();
  int *middle_argument = middle.get(), *out_argument = out.get();
  void* arguments[] = {&in_argument, &middle_argument, &out_argument};
  const void* kernel = faulty ? reinterpret_cast<const void*>(two_phases<true>)
                              : reinterpret_cast<const void*>(two_phases<false>);
  cudaLaunchCooperativeKernel(kernel, dim3(4), dim3(32), arguments, 0, nullptr);
  const auto got = out.read();
  return got[0] == 254 && got[127] == 0;
}

KV_PROGRAM(word_of_all_lanes, KV_SIMT_KIND_RACE) {
  DeviceArray<int> word(std::vector<int>{7}), out(96);
  KV_LAUNCH(share_word, 3, 32, 0, word.get(), out.get());
  return out.read() == std::vector<int>(96, 7);
}

KV_PROGRAM(overlapping_blocks, KV_SIMT_KIND_RACE) {
  DeviceArray<int> out(128);
  KV_LAUNCH(scatter, 4, 32, 0, out.get());
  return out.read() == counting<int>(128);
}
