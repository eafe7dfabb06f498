// Faults of single accesses: bounds, lifetime, alignment, rights.
#include "harness/simt/programs_test/program.h"

using namespace kv::simt::programs;

namespace {

template <bool kFaulty>
__global__ void copy_tail(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n + kFaulty) {
    const float x = i < n ? in[i] : 0.0f;
    out[i] = x;  // FAULT: tail_write
  }
}

template <bool kFaulty>
__global__ void differences(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float next = 0.0f;
  if (kFaulty || i + 1 < n) next = in[i + 1];  // FAULT: tail_read
  out[i] = next - in[i];
}

template <bool kFaulty>
__global__ void reverse_shared(const int* in, int* out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const int mirrored = 63 - static_cast<int>(threadIdx.x) + (kFaulty ? 1 : 0);
  out[threadIdx.x] = tile[mirrored];  // FAULT: shared_overrun
}

template <bool kFaulty>
__global__ void rotate_dynamic(const int* in, int* out) {
  extern __shared__ int dynamic_tile[];
  const int next = (threadIdx.x + 1) % blockDim.x;
  dynamic_tile[next] = in[threadIdx.x];  // FAULT: dynamic_shared_too_small
  __syncthreads();
  out[threadIdx.x] = dynamic_tile[threadIdx.x];
}

template <bool kFaulty>
__global__ void local_table(const int* index, int* out) {
  int table[16];
  for (int i = 0; i < 16; ++i) table[index[i] & 15] = i * i;
  const int wanted = index[threadIdx.x] + (kFaulty ? 4096 : 0);
  out[threadIdx.x] = table[wanted];  // FAULT: local_overrun
}

template <bool kFaulty>
__global__ void add_one(int* x) {
  x[threadIdx.x] += 1;  // FAULT: freed_memory
}

template <bool kFaulty>
__global__ void load_vectors(const float* in, float* out) {
  const float* from = in + (kFaulty ? 1 : 0);
  const float4 v = reinterpret_cast<const float4*>(from)[threadIdx.x];  // FAULT: misaligned_vector
  out[threadIdx.x] = v.x + v.y + v.z + v.w;
}

template <bool kFaulty>
__global__ void touch_rows(uint8_t* rows, uint32_t stride_bytes) {
  const uint32_t row = threadIdx.x;
  // The product does not fit 31 bits from row 2 on.
  const int64_t offset =
      kFaulty ? int64_t{static_cast<int32_t>(row * stride_bytes)} : int64_t{row} * stride_bytes;
  rows[offset] = static_cast<uint8_t>(row);  // FAULT: offset_of_32_bits
}

template <bool kFaulty>
__global__ void scale_copy(float* in, float* out) {
  const float doubled = 2.0f * in[threadIdx.x];
  float* to = kFaulty ? in : out;
  to[threadIdx.x] = doubled;  // FAULT: write_to_input
}

}  // namespace

KV_PROGRAM(tail_write, KV_SIMT_KIND_OUT_OF_BOUNDS) {
  const auto values = counting<float>(100);
  DeviceArray<float> in(values), out(100);
  KV_LAUNCH(copy_tail, 4, 32, 0, in.get(), out.get(), 100);
  return out.read() == values;
}

KV_PROGRAM(tail_read, KV_SIMT_KIND_OUT_OF_BOUNDS) {
  DeviceArray<float> in(counting<float>(100)), out(100);
  KV_LAUNCH(differences, 4, 32, 0, in.get(), out.get(), 100);
  const auto got = out.read();
  return got[0] == 1.0f && got[98] == 1.0f && got[99] == -99.0f;
}

KV_PROGRAM(shared_overrun, KV_SIMT_KIND_OUT_OF_BOUNDS) {
  DeviceArray<int> in(counting<int>(64)), out(64);
  KV_LAUNCH(reverse_shared, 1, 64, 0, in.get(), out.get());
  const auto got = out.read();
  return got[0] == 63 && got[63] == 0;
}

KV_PROGRAM(dynamic_shared_too_small, KV_SIMT_KIND_OUT_OF_BOUNDS) {
  DeviceArray<int> in(counting<int>(64)), out(64);
  const size_t bytes = 64 * sizeof(int) - (faulty ? sizeof(int) : 0);
  KV_LAUNCH(rotate_dynamic, 1, 64, bytes, in.get(), out.get());
  const auto got = out.read();
  return got[0] == 63 && got[1] == 0 && got[63] == 62;
}

KV_PROGRAM(local_overrun, KV_SIMT_KIND_OUT_OF_BOUNDS) {
  DeviceArray<int> index(counting<int>(16)), out(16);
  KV_LAUNCH(local_table, 1, 16, 0, index.get(), out.get());
  const auto got = out.read();
  return got[3] == 9 && got[15] == 225;
}

KV_PROGRAM(freed_memory, KV_SIMT_KIND_USE_AFTER_FREE) {
  DeviceArray<int> kept(counting<int>(32));
  int* doomed = nullptr;
  cudaMalloc(&doomed, 32 * sizeof(int));
  cudaMemset(doomed, 0, 32 * sizeof(int));
  cudaFree(doomed);
  KV_LAUNCH(add_one, 1, 32, 0, faulty ? doomed : kept.get());
  return kept.read() == counting<int>(32, 1);
}

KV_PROGRAM(misaligned_vector, KV_SIMT_KIND_MISALIGNED) {
  DeviceArray<float> in(counting<float>(132)), out(32);
  KV_LAUNCH(load_vectors, 1, 32, 0, in.get(), out.get());
  return out.read()[31] == 124.0f + 125.0f + 126.0f + 127.0f;
}

KV_PROGRAM(offset_of_32_bits, KV_SIMT_KIND_OUT_OF_BOUNDS) {
  constexpr uint32_t kStrideBytes = 1u << 30;  // four rows far apart; only touched pages cost
  uint8_t* rows = nullptr;
  cudaMalloc(&rows, 4 * size_t{kStrideBytes});
  KV_LAUNCH(touch_rows, 1, 4, 0, rows, kStrideBytes);
  uint8_t last = 0;
  cudaMemcpy(&last, rows + 3 * size_t{kStrideBytes}, 1, cudaMemcpyDeviceToHost);
  cudaFree(rows);
  return last == 3;
}

KV_PROGRAM(write_to_input, KV_SIMT_KIND_ACCESS_RIGHTS) {
  DeviceArray<float> in(counting<float>(32)), out(32);
  kv_simt_control(1)->set_access(reinterpret_cast<uint64_t>(in.get()), in.bytes(),
                                 KV_SIMT_ACCESS_READ);
  KV_LAUNCH(scale_copy, 1, 32, 0, in.get(), out.get());
  return out.read()[31] == 62.0f && in.read() == counting<float>(32);
}
