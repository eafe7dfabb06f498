// Asynchronous copies into shared memory (cp.async).
#include <cuda_pipeline.h>

#include "harness/simt/programs_test/program.h"

using namespace kv::simt::programs;

namespace {

template <bool kFaulty>
__global__ void fetch_and_mirror(const int4* in, int4* out) {
  __shared__ int4 tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(int4));
  __pipeline_commit();
  if (!kFaulty) __pipeline_wait_prior(0);
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];  // FAULT: copy_without_wait
}

/// Two buffers: tile t + 1 is under way while tile t is used.
template <bool kFaulty>
__global__ void double_buffered_sum(const int4* in, int* out, int tiles) {
  __shared__ int4 buffer[2][64];
  const auto fetch = [&](int tile) {
    __pipeline_memcpy_async(&buffer[tile % 2][threadIdx.x], &in[64 * tile + threadIdx.x],
                            sizeof(int4));
    __pipeline_commit();
  };
  fetch(0);
  int sum = 0;
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) {
      fetch(t + 1);
    } else {
      __pipeline_commit();  // an empty group keeps the count of groups in flight
    }
    __pipeline_wait_prior(kFaulty ? 2 : 1);
    __syncthreads();
    const int4 v = buffer[t % 2][63 - threadIdx.x];  // FAULT: wait_one_short
    sum += v.x + v.w;
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

/// The same with one buffer by mistake: the next tile arrives where this one is still read.
template <bool kFaulty>
__global__ void single_buffered_sum(const int4* in, int* out, int tiles) {
  __shared__ int4 buffer[2][64];
  const auto fetch = [&](int tile) {
    const int stage = kFaulty ? 0 : tile % 2;
    __pipeline_memcpy_async(&buffer[stage][threadIdx.x], &in[64 * tile + threadIdx.x],
                            sizeof(int4));
    __pipeline_commit();
  };
  fetch(0);
  int sum = 0;
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) {
      fetch(t + 1);
    } else {
      __pipeline_commit();
    }
    __pipeline_wait_prior(1);
    __syncthreads();
    const int4 v = buffer[kFaulty ? 0 : t % 2][63 - threadIdx.x];  // FAULT: stage_not_advanced
    sum += v.x + v.w;
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

/// A block barrier does not replace the other threads' wait: each waits for its own copies first.
template <bool kFaulty>
__global__ void fetch_by_one_warp(const int4* in, int4* out) {
  __shared__ int4 tile[64];
  if (threadIdx.x < 32) {
    __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(int4));
    __pipeline_memcpy_async(&tile[threadIdx.x + 32], &in[threadIdx.x + 32], sizeof(int4));
    __pipeline_commit();
    if (!kFaulty) __pipeline_wait_prior(0);
  } else {
    if (kFaulty) __pipeline_wait_prior(0);  // nothing of its own to wait for
  }
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];  // FAULT: wait_by_the_wrong_warp
}

}  // namespace

KV_PROGRAM(copy_without_wait, KV_SIMT_KIND_ASYNC) {
  DeviceArray<int> in(counting<int>(256)), out(256);
  KV_LAUNCH(fetch_and_mirror, 1, 64, 0, reinterpret_cast<int4*>(in.get()),
            reinterpret_cast<int4*>(out.get()));
  const auto got = out.read();
  return got[0] == 252 && got[255] == 3;
}

KV_PROGRAM(wait_one_short, KV_SIMT_KIND_ASYNC) {
  DeviceArray<int> in(counting<int>(4 * 256)), out(64);
  KV_LAUNCH(double_buffered_sum, 1, 64, 0, reinterpret_cast<int4*>(in.get()), out.get(), 4);
  return out.read()[63] == 2 * (0 + 256 + 512 + 768) + 4 * 3;
}

KV_PROGRAM(stage_not_advanced, KV_SIMT_KIND_ASYNC) {
  DeviceArray<int> in(counting<int>(4 * 256)), out(64);
  KV_LAUNCH(single_buffered_sum, 1, 64, 0, reinterpret_cast<int4*>(in.get()), out.get(), 4);
  return out.read()[63] == 2 * (0 + 256 + 512 + 768) + 4 * 3;
}

KV_PROGRAM(wait_by_the_wrong_warp, KV_SIMT_KIND_ASYNC) {
  DeviceArray<int> in(counting<int>(256)), out(256);
  KV_LAUNCH(fetch_by_one_warp, 1, 64, 0, reinterpret_cast<int4*>(in.get()),
            reinterpret_cast<int4*>(out.get()));
  return out.read() == counting<int>(256);
}
