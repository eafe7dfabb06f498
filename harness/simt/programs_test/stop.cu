// Kernels that never end, or end themselves.
#include <cassert>

#include "harness/simt/programs_test/program.h"

using namespace kv::simt::programs;

namespace {

template <bool kFaulty>
__global__ void wait_for_flag(const volatile int* flag, int* out) {
  while (*flag == 0) {  // FAULT: spin_forever
  }
  out[threadIdx.x] = 1;
}

template <bool kFaulty>
__global__ void count_down(int* out, int step) {
  int left = 1000;
  while (left != 0) {  // FAULT: endless_loop
    left -= step;      // FAULT: endless_loop
    out[0] = left;     // FAULT: endless_loop
  }
}

template <bool kFaulty>
__global__ void trap_on_negative(const int* in, int* out) {
  if (in[threadIdx.x] < 0) __trap();  // FAULT: trap
  out[threadIdx.x] = in[threadIdx.x];
}

template <bool kFaulty>
__global__ void assert_in_range(const int* in, int* out, int limit) {
  assert(in[threadIdx.x] < limit);  // FAULT: assertion
  out[threadIdx.x] = in[threadIdx.x];
}

}  // namespace

KV_PROGRAM(spin_forever, KV_SIMT_KIND_HANG) {
  DeviceArray<int> flag(std::vector<int>{faulty ? 0 : 1}), out(32);
  KV_LAUNCH(wait_for_flag, 1, 32, 0, flag.get(), out.get());
  return out.read() == std::vector<int>(32, 1);
}

KV_PROGRAM(endless_loop, KV_SIMT_KIND_HANG) {
  DeviceArray<int> out(1);
  KV_LAUNCH(count_down, 1, 1, 0, out.get(), faulty ? 0 : 8);
  return out.read()[0] == 0;
}

KV_PROGRAM(trap, KV_SIMT_KIND_TRAP) {
  DeviceArray<int> in(counting<int>(32, faulty ? -1 : 0)), out(32);
  KV_LAUNCH(trap_on_negative, 1, 32, 0, in.get(), out.get());
  return out.read() == counting<int>(32);
}

KV_PROGRAM(assertion, KV_SIMT_KIND_TRAP) {
  DeviceArray<int> in(counting<int>(32)), out(32);
  KV_LAUNCH(assert_in_range, 1, 32, 0, in.get(), out.get(), faulty ? 31 : 32);
  return out.read() == counting<int>(32);
}
