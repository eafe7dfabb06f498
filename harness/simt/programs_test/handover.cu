// Warps and blocks that hand data over by flags, locks and queues.
#include <cuda/atomic>

#include "harness/simt/programs_test/program.h"

using namespace kv::simt::programs;

namespace {

__device__ void store_release_cta(int* flag, int value) {
  asm volatile("st.release.cta.b32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ void store_relaxed_cta(int* flag, int value) {
  asm volatile("st.relaxed.cta.b32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
__device__ int load_acquire_cta(int* flag) {
  int value;
  asm volatile("ld.acquire.cta.b32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

/// Warp 0 fills a tile and raises a flag in shared memory; warp 1 waits for it.
template <bool kFaulty>
__global__ void warp_to_warp(const int* in, int* out) {
  __shared__ int tile[32];
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    tile[lane] = in[lane];  // FAULT: flag_without_fence
    __syncwarp();
    if (!kFaulty) __threadfence_block();
    if (lane == 0) flag = 1;
  } else {
    while (flag == 0) {
    }
    __threadfence_block();
    out[lane] = tile[31 - lane];  // FAULT: flag_without_fence
  }
}

/// The same with the flag in global memory; what is written after the fence is not behind it.
template <bool kFaulty>
__global__ void warp_to_warp_global(const int* in, volatile int* flag, int* out) {
  __shared__ int tile[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    if (kFaulty) __threadfence_block();
    tile[lane] = in[lane];  // FAULT: write_after_fence
    if (!kFaulty) __threadfence_block();
    __syncwarp();
    if (lane == 0) *flag = 1;
  } else {
    while (*flag == 0) {
    }
    __threadfence_block();
    out[lane] = tile[31 - lane];  // FAULT: write_after_fence
  }
}

/// By release and acquire of the block's scope.
template <bool kFaulty>
__global__ void release_in_block(const int* in, int* out) {
  __shared__ int tile[32];
  __shared__ int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    tile[lane] = in[lane];  // FAULT: relaxed_in_block
    __syncwarp();
    if (lane == 0) kFaulty ? store_relaxed_cta(&flag, 1) : store_release_cta(&flag, 1);
  } else {
    while (load_acquire_cta(&flag) == 0) {
    }
    out[lane] = tile[31 - lane];  // FAULT: relaxed_in_block
  }
}

/// One producer, two consumers, one slot: each consumer says when it has read.
template <bool kFaulty>
__global__ void ring(const int* in, int* out, int rounds) {
  __shared__ int tile[32];
  __shared__ volatile int full, empty[2];
  if (threadIdx.x == 0) full = 0;
  if (threadIdx.x < 2) empty[threadIdx.x] = 0;
  __syncthreads();
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int round = 1; round <= rounds; ++round) {
    if (warp == 0) {
      while (empty[0] < round - 1 || empty[1] < round - 1) {
      }
      __threadfence_block();
      tile[lane] = in[32 * (round - 1) + lane];  // FAULT: slot_freed_too_early
      __threadfence_block();
      __syncwarp();
      if (lane == 0) full = round;
    } else {
      while (full < round) {
      }
      __threadfence_block();
      if (kFaulty && lane == 0) empty[warp - 1] = round;
      const int value = tile[lane];  // FAULT: slot_freed_too_early
      out[32 * (2 * (round - 1) + warp - 1) + lane] = value + warp;
      __threadfence_block();
      __syncwarp();
      if (!kFaulty && lane == 0) empty[warp - 1] = round;
    }
  }
}

/// A lock in shared memory around a sum that no atomic protects.
template <bool kFaulty>
__global__ void locked_in_block(const int* in, int* out) {
  __shared__ int sum, lock;
  if (threadIdx.x == 0) sum = lock = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence_block();
    sum += in[threadIdx.x / 32];  // FAULT: unlock_without_fence
    if (!kFaulty) __threadfence_block();
    atomicExch(&lock, 0);
  }
  __syncthreads();
  if (threadIdx.x == 0) *out = sum;
}

/// The same between blocks.
template <bool kFaulty>
__global__ void locked_in_grid(const int* in, int* sum, int* lock) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *sum += in[blockIdx.x];  // FAULT: lock_without_fence
  if (!kFaulty) __threadfence();
  atomicExch(lock, 0);
}

/// An atomic of the block's scope is none for other blocks.
template <bool kFaulty>
__global__ void count_blocks(int* count) {
  if (threadIdx.x != 0) return;
  if (kFaulty) {
    atomicAdd_block(count, 1);  // FAULT: atomic_of_block_scope
  } else {
    atomicAdd(count, 1);
  }
}

/// A release of the block's scope publishes nothing to other blocks.
template <bool kFaulty>
__global__ void release_too_narrow_kernel(int* word, int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> wide(*flag);
  cuda::atomic_ref<int, cuda::thread_scope_block> narrow(*flag);
  if (blockIdx.x == 0) {
    *word = 42;  // FAULT: release_too_narrow
    if (kFaulty) {
      narrow.store(1, cuda::memory_order_release);  // FAULT: release_too_narrow
    } else {
      wide.store(1, cuda::memory_order_release);
    }
  } else {
    while (wide.load(cuda::memory_order_acquire) == 0) {  // FAULT: release_too_narrow
    }
    *out = *word;  // FAULT: release_too_narrow
  }
}

/// Split-K: blocks add to a tile in turn, handed on by a semaphore. All threads of a block must be
/// done before one of them releases it.
template <bool kFaulty>
__global__ void split_k(const int* in, int* tile, int* semaphore) {
  const int i = threadIdx.x, turn = blockIdx.x;
  if (i == 0) {
    int seen;
    do {
      asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(seen) : "l"(semaphore) : "memory");
    } while (seen != turn);
  }
  __syncthreads();
  const int before = turn == 0 ? 0 : tile[i];    // FAULT: semaphore_too_early
  tile[i] = before + in[turn * blockDim.x + i];  // FAULT: semaphore_too_early
  if (!kFaulty) __syncthreads();
  if (i == 0) {
    asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(semaphore), "r"(turn + 1) : "memory");
  }
}

/// The last block to come sets the counter back for the next launch; nobody else may.
template <bool kFaulty>
__global__ void count_and_reset(const int* in, int* parts, unsigned* count, int* out) {
  if (threadIdx.x != 0) return;
  parts[blockIdx.x] = in[blockIdx.x];
  __threadfence();
  const unsigned ticket = atomicAdd(count, 1u);  // FAULT: counter_reset_too_early
  if (ticket != gridDim.x - (kFaulty ? 2 : 1)) return;
  __threadfence();
  int sum = 0;
  for (int b = 0; b < gridDim.x; ++b) sum += kFaulty ? 0 : parts[b];
  *out = sum;
  *count = 0;  // FAULT: counter_reset_too_early
}

/// The same with the warps of a block and a counter in shared memory.
template <bool kFaulty>
__global__ void count_warps(const int* in, int* out) {
  __shared__ int parts[4];
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  const int warp = threadIdx.x / 32;
  for (int round = 0; round < 2; ++round) {
    if (threadIdx.x % 32 == 0) {
      parts[warp] = in[warp] + round;
      __threadfence_block();
      if (atomicAdd(&count, 1) == (kFaulty ? 2 : 3)) {  // FAULT: warps_counted_too_early
        __threadfence_block();
        for (int w = 0; w < 4; ++w) out[4 * round + w] = kFaulty ? 0 : parts[w];
        count = 0;  // FAULT: warps_counted_too_early
      }
    }
    __syncthreads();
  }
}

/// Decoupled look-back: each block adds what the block before it has published.
template <bool kFaulty>
__global__ void look_back(const int* in, unsigned* tickets, int* value, volatile int* state,
                          int* out) {
  __shared__ int tile;
  if (threadIdx.x == 0) tile = static_cast<int>(atomicAdd(tickets, 1u));  // blocks start in order
  __syncthreads();
  if (threadIdx.x != 0) return;
  const int mine = tile;
  int sum = in[mine];
  if (mine > 0) {
    while (state[mine - 1] == 0) {
    }
    __threadfence();
    sum += value[mine - 1];  // FAULT: state_before_value
  }
  if (kFaulty) state[mine] = 1;
  value[mine] = sum;  // FAULT: state_before_value
  __threadfence();
  if (!kFaulty) state[mine] = 1;
  out[mine] = sum;
}

/// Persistent blocks take tiles from a queue, and tell their threads through shared memory.
template <bool kFaulty>
__global__ void persistent(const int* in, unsigned* head, int* out, unsigned tiles) {
  __shared__ unsigned next;
  while (true) {
    if (threadIdx.x == 0) next = atomicAdd(head, 1u);  // FAULT: next_tile_too_early
    __syncthreads();                                   // FAULT: next_tile_too_early
    const unsigned tile = next;                        // FAULT: next_tile_too_early
    if (!kFaulty) __syncthreads();
    if (tile >= tiles) return;
    out[tile * blockDim.x + threadIdx.x] = 2 * in[tile * blockDim.x + threadIdx.x];
  }
}

/// Two buffers, full and empty as named barriers: two warps produce, two consume.
template <bool kFaulty>
__global__ void specialised(const int* in, int* out, int tiles) {
  __shared__ int buffer[2][64];
  const int i = threadIdx.x % 64;
  const auto free = [](int stage) {
    asm volatile("bar.arrive %0, 128;" ::"r"(3 + stage) : "memory");
  };
  const bool producer = threadIdx.x < 64;
  if (!producer) free(0), free(1);
  for (int t = 0; t < tiles; ++t) {
    const int stage = t % 2;
    if (producer) {
      asm volatile("bar.sync %0, 128;" ::"r"(3 + stage) : "memory");
      buffer[stage][i] = in[64 * t + i];  // FAULT: stage_freed_too_early
      asm volatile("bar.arrive %0, 128;" ::"r"(1 + stage) : "memory");
    } else {
      asm volatile("bar.sync %0, 128;" ::"r"(1 + stage) : "memory");
      if (kFaulty && t + 2 < tiles) free(stage);
      out[64 * t + i] = buffer[stage][63 - i];  // FAULT: stage_freed_too_early
      if (!kFaulty && t + 2 < tiles) free(stage);
    }
  }
}

}  // namespace

KV_PROGRAM(flag_without_fence, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(32)), out(32);
  KV_LAUNCH(warp_to_warp, 1, 64, 0, in.get(), out.get());
  return out.read()[0] == 31;
}

KV_PROGRAM(write_after_fence, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(32)), out(32), flag(std::vector<int>{0});
  KV_LAUNCH(warp_to_warp_global, 1, 64, 0, in.get(), flag.get(), out.get());
  return out.read()[0] == 31;
}

KV_PROGRAM(relaxed_in_block, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(32)), out(32);
  KV_LAUNCH(release_in_block, 1, 64, 0, in.get(), out.get());
  return out.read()[0] == 31;
}

KV_PROGRAM(slot_freed_too_early, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(128)), out(256);
  KV_LAUNCH(ring, 1, 96, 0, in.get(), out.get(), 4);
  const auto got = out.read();
  return got[0] == 1 && got[32] == 2 && got[255] == 129;
}

KV_PROGRAM(unlock_without_fence, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(4)), out(1);
  KV_LAUNCH(locked_in_block, 1, 128, 0, in.get(), out.get());
  return out.read()[0] == 6;
}

KV_PROGRAM(lock_without_fence, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(8)), sum(std::vector<int>{0}), lock(std::vector<int>{0});
  KV_LAUNCH(locked_in_grid, 8, 32, 0, in.get(), sum.get(), lock.get());
  return sum.read()[0] == 28;
}

KV_PROGRAM(atomic_of_block_scope, KV_SIMT_KIND_RACE) {
  DeviceArray<int> count(std::vector<int>{0});
  KV_LAUNCH(count_blocks, 4, 32, 0, count.get());
  return count.read()[0] == 4;
}

KV_PROGRAM(release_too_narrow, KV_SIMT_KIND_RACE) {
  DeviceArray<int> word(std::vector<int>{0}), flag(std::vector<int>{0}), out(1);
  KV_LAUNCH(release_too_narrow_kernel, 2, 1, 0, word.get(), flag.get(), out.get());
  return out.read()[0] == 42;
}

KV_PROGRAM(semaphore_too_early, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(4 * 128)), tile(128), semaphore(std::vector<int>{0});
  KV_LAUNCH(split_k, 4, 128, 0, in.get(), tile.get(), semaphore.get());
  return tile.read()[1] == 4 + 128 + 256 + 384;
}

KV_PROGRAM(counter_reset_too_early, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(8)), parts(8), out(std::vector<int>{0});
  DeviceArray<unsigned> count(std::vector<unsigned>{0});
  for (int launch = 0; launch < 2; ++launch) {
    KV_LAUNCH(count_and_reset, 8, 32, 0, in.get(), parts.get(), count.get(), out.get());
  }
  return out.read()[0] == 28 && count.read()[0] == 0;
}

KV_PROGRAM(warps_counted_too_early, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(4)), out(std::vector<int>(8, 0));
  KV_LAUNCH(count_warps, 1, 128, 0, in.get(), out.get());
  return out.read() == std::vector<int>{0, 1, 2, 3, 1, 2, 3, 4};
}

KV_PROGRAM(state_before_value, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(8)), value(std::vector<int>(8, 0));
  DeviceArray<int> state(std::vector<int>(8, 0)), out(8);
  DeviceArray<unsigned> tickets(std::vector<unsigned>{0});
  KV_LAUNCH(look_back, 8, 64, 0, in.get(), tickets.get(), value.get(), state.get(), out.get());
  return out.read()[7] == 28;
}

KV_PROGRAM(next_tile_too_early, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(8 * 64)), out(8 * 64);
  DeviceArray<unsigned> head(std::vector<unsigned>{0});
  KV_LAUNCH(persistent, 2, 64, 0, in.get(), head.get(), out.get(), 8u);
  return out.read()[511] == 1022;
}

KV_PROGRAM(stage_freed_too_early, KV_SIMT_KIND_RACE) {
  DeviceArray<int> in(counting<int>(4 * 64)), out(4 * 64);
  KV_LAUNCH(specialised, 1, 128, 0, in.get(), out.get(), 4);
  const auto got = out.read();
  return got[0] == 63 && got[255] == 192;
}
