// Undefined data: followed through registers and memory, reported where it decides something.
#include "harness/simt/programs_test/program.h"

using namespace kv::simt::programs;

namespace {

template <bool kFaulty>
__global__ void accumulate(const int* in, int* sum, int* flag) {
  const int total = sum[threadIdx.x] + in[threadIdx.x];
  sum[threadIdx.x] = total;             // FAULT: uncleared_accumulator
  if (total > 100) atomicAdd(flag, 1);  // FAULT: uncleared_accumulator
}

template <bool kFaulty>
__global__ void gather(const int* index, const int* in, int* out) {
  const int from = index[threadIdx.x];
  out[threadIdx.x] = in[from & 31];  // FAULT: undefined_index
}

template <bool kFaulty>
__global__ void pad_shared(const float* in, int* over_limit, int n) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  if (i < n) tile[i] = in[i];
  if (!kFaulty && i >= n) tile[i] = 0.0f;
  __syncthreads();
  if (tile[63 - i] > 2.0f) atomicAdd(over_limit, 1);  // FAULT: unfilled_shared
}

template <bool kFaulty>
__global__ void smooth(const float* in, const float* start, int* converged, int n) {
  // The loop carries what it read first, long after the read.
  float mean = kFaulty ? start[threadIdx.x] : in[threadIdx.x];
  for (int i = 0; i < n; ++i) mean = 0.5f * mean + 0.5f * in[32 * i + threadIdx.x];
  if (mean == 1.0f) atomicAdd(converged, 1);  // FAULT: carried_in_register
}

/// A page of 32 slots of which `length` are filled: the whole page is read, as vectors would be.
template <bool kFaulty>
__global__ void sum_page(const int* page, int length, int* over_limit) {
  const int lane = threadIdx.x;
  const int read = page[lane];
  const int used = kFaulty || lane < length ? read : 0;
  int sum = used;
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (sum > 100) atomicAdd(over_limit, 1);  // FAULT: masked_tail
}

/// Padding bytes travel with the struct and are nobody's business.
struct Padded {
  int8_t small;
  int32_t wide;
};

template <bool kFaulty>
__global__ void move_padded(const Padded* in, Padded* middle, int* threes) {
  middle[threadIdx.x].wide = in[threadIdx.x].wide;
  if (!kFaulty) middle[threadIdx.x].small = in[threadIdx.x].small;
  const Padded moved = middle[threadIdx.x];
  if (moved.wide % 10 != 0) atomicAdd(threes, 1000);
  if (moved.small == 3) atomicAdd(threes, 1);  // FAULT: forgotten_member
}

/// Every lane reads the same limit.
template <bool kFaulty>
__global__ void count_above(const int* in, const int* limit, int* above) {
  if (in[threadIdx.x] > *limit) atomicAdd(above, 1);  // FAULT: limit_not_set
}

__global__ void set_second(int2* pairs) { pairs[threadIdx.x].y = threadIdx.x; }

/// Two numbers are read at once; of those that nobody wrote none is used.
template <bool kFaulty>
__global__ void use_second(const int2* pairs, int* above) {
  const int2 pair = pairs[threadIdx.x];
  const int used = kFaulty ? pair.x ^ pair.y : pair.y;
  if (used > 15) atomicAdd(above, 1);  // FAULT: first_not_set
}

/// A row of four 8x8 matrices for each lane, read by ldmatrix. Lanes of one half, the first or the
/// last, have something undefined in the register of the address before the row is in it; the other
/// half may be at ldmatrix already.
template <bool kFaulty>
__global__ void load_rows(const int* in, const int* undefined, int* out, bool last) {
  __shared__ __align__(16) int tile[132];
  const int lane = threadIdx.x;
  for (int i = 0; i < 4; ++i) tile[4 * lane + i] = in[4 * lane + i];
  if (lane < 4) tile[128 + lane] = 1;
  __syncwarp();
  unsigned row = static_cast<unsigned>(__cvta_generic_to_shared(&tile[4 * lane]));
  if (kFaulty && lane == 3) row += undefined[0] & 16;
  int a, b, c, d;
  asm volatile(
      "{ .reg .pred p; .reg .u32 at;\n"
      "mov.u32 at, %4;\n"
      "setp.ne.u32 p, %6, 0;\n"
      "@p bra READ;\n"
      "ld.global.u32 at, [%5];\n"
      "mov.u32 at, %4;\n"
      "READ:\n"
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [at]; }\n"
      : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
      : "r"(row), "l"(undefined),
        "r"(static_cast<unsigned>((lane < 16) == last))  // FAULT: undefined_row
      : "memory");
  out[lane] = a + b + c + d;
}

}  // namespace

KV_PROGRAM(undefined_row, KV_SIMT_KIND_UNDEFINED) {
  DeviceArray<int> in(std::vector<int>(128, 1)), undefined(1), out(32);
  bool right = true;
  for (const bool last : {false, true}) {
    KV_LAUNCH(load_rows, 1, 32, 0, in.get(), undefined.get(), out.get(), last);
    right = right && out.read() == std::vector<int>(32, 4);
  }
  return right;
}

KV_PROGRAM(uncleared_accumulator, KV_SIMT_KIND_UNDEFINED) {
  DeviceArray<int> in(counting<int>(32, 90)), sum(32), flag(std::vector<int>{0});
  if (!faulty) cudaMemset(sum.get(), 0, sum.bytes());
  KV_LAUNCH(accumulate, 1, 32, 0, in.get(), sum.get(), flag.get());
  return flag.read()[0] == 21;
}

KV_PROGRAM(limit_not_set, KV_SIMT_KIND_UNDEFINED) {
  DeviceArray<int> in(counting<int>(32)), limit(1), above(std::vector<int>{0});
  const int sixteen = 16;
  if (!faulty) cudaMemcpy(limit.get(), &sixteen, sizeof sixteen, cudaMemcpyHostToDevice);
  KV_LAUNCH(count_above, 1, 32, 0, in.get(), limit.get(), above.get());
  return above.read()[0] == 15;
}

KV_PROGRAM(first_not_set, KV_SIMT_KIND_UNDEFINED) {
  DeviceArray<int2> pairs(32);
  DeviceArray<int> above(std::vector<int>{0});
  set_second<<<1, 32>>>(pairs.get());
  KV_LAUNCH(use_second, 1, 32, 0, pairs.get(), above.get());
  return above.read()[0] == 16;
}

KV_PROGRAM(undefined_index, KV_SIMT_KIND_UNDEFINED) {
  DeviceArray<int> index(32), in(counting<int>(32)), out(32);
  if (!faulty) cudaMemset(index.get(), 0, index.bytes());
  KV_LAUNCH(gather, 1, 32, 0, index.get(), in.get(), out.get());
  return out.read() == std::vector<int>(32, 0);
}

KV_PROGRAM(unfilled_shared, KV_SIMT_KIND_UNDEFINED) {
  DeviceArray<float> in(counting<float>(64));
  DeviceArray<int> over(std::vector<int>{0});
  KV_LAUNCH(pad_shared, 1, 64, 0, in.get(), over.get(), 40);
  return over.read()[0] == 37;
}

KV_PROGRAM(carried_in_register, KV_SIMT_KIND_UNDEFINED) {
  DeviceArray<float> in(std::vector<float>(32 * 8, 1.0f)), start(32);
  DeviceArray<int> converged(std::vector<int>{0});
  KV_LAUNCH(smooth, 1, 32, 0, in.get(), start.get(), converged.get(), 8);
  return converged.read()[0] == 32;
}

KV_PROGRAM(masked_tail, KV_SIMT_KIND_UNDEFINED) {
  DeviceArray<int> page(32), over(std::vector<int>{0});
  const auto filled = counting<int>(20);
  cudaMemcpy(page.get(), filled.data(), 20 * sizeof(int), cudaMemcpyHostToDevice);
  KV_LAUNCH(sum_page, 1, 32, 0, page.get(), 20, over.get());
  return over.read()[0] == 32;
}

KV_PROGRAM(forgotten_member, KV_SIMT_KIND_UNDEFINED) {
  std::vector<Padded> values(32);
  for (int i = 0; i < 32; ++i) values[i] = {static_cast<int8_t>(i), 10 * i};
  DeviceArray<Padded> in(values), middle(32);
  DeviceArray<int> threes(std::vector<int>{0});
  KV_LAUNCH(move_padded, 1, 32, 0, in.get(), middle.get(), threes.get());
  return threes.read()[0] == 1;
}
