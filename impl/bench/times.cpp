#include "impl/bench/times.h"

#include <algorithm>
#include <cstdio>

#include "impl/bench/matrix_rate.h"
#include "impl/bench/step.h"

namespace kvattn::bench {
namespace {

struct Destroyed {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Event = std::unique_ptr<CUevent_st, Destroyed>;

Event create_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  return Event(event);
}

/// Two pieces of memory whose copies measure the device, and keep it busy.
struct Copies {
  uint64_t bytes;
  DeviceMemory from = allocate_numbers(bytes), to = allocate(bytes);

  void enqueue() const {
    check(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice, nullptr),
          "cudaMemcpyAsync");
  }
};

/// Median microseconds of `launch(run)`, each run between two events. The device is kept busy while
/// the host enqueues all of them: it finds each run waiting, so that no time of the host's counts.
template <class Launch>
double median_us(const Extent& extent, const Copies& copies, Launch launch) {
  constexpr int kCopiesAhead = 8;
  std::vector<Event> events;
  for (int i = 0; i < 2 * (extent.warm_ups + extent.runs); ++i) events.push_back(create_event());
  launch(0);  // what is compiled or loaded at first use is ready afterwards
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  for (int i = 0; i < kCopiesAhead; ++i) copies.enqueue();
  for (int run = 0; run < extent.warm_ups + extent.runs; ++run) {
    check(cudaEventRecord(events[2 * run].get(), nullptr), "cudaEventRecord");
    launch(run + 1);
    check(cudaEventRecord(events[2 * run + 1].get(), nullptr), "cudaEventRecord");
  }
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::vector<float> times;
  for (int run = extent.warm_ups; run < extent.warm_ups + extent.runs; ++run) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, events[2 * run].get(), events[2 * run + 1].get()),
          "cudaEventElapsedTime");
    times.push_back(ms * 1000);
  }
  std::ranges::nth_element(times, times.begin() + extent.runs / 2);
  return times[extent.runs / 2];
}

/// What the device does in a second.
struct Rates {
  double copy;    // bytes read and written by a copy within it
  double matrix;  // flop; 0: cuBLAS is not there
};

void print_step(const Workload& w, const Extent& extent, const Copies& copies, const Rates& rates) {
  const Least least = least_of(w);
  const uint64_t pool = pool_bytes(w);
  Step step(w, multiprocessors(), static_cast<int64_t>(extent.rotated_bytes / pool) + 1);
  const double us = median_us(extent, copies, [&](int run) { step.launch(run); });
  const double bytes = static_cast<double>(pool + least.query_and_output_bytes) / us * 1e6;
  const double flops = static_cast<double>(least.flops) / us * 1e6;
  std::printf("%-36s %-16s %10.1f %10.1f %8.1f %10.2f", w.name, std::string(step.variant()).c_str(),
              us, bytes / 1e9, 100 * bytes / rates.copy, flops / 1e12);
  if (rates.matrix > 0) std::printf(" %8.1f", 100 * flops / rates.matrix);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

void print_times(std::span<const Workload* const> steps, const Extent& extent) {
  const Copies copies{extent.copy_bytes};
  const double copy_us = median_us(extent, copies, [&](int) { copies.enqueue(); });
  const Rates rates = {2.0 * static_cast<double>(extent.copy_bytes) / copy_us * 1e6,
                       matrix_rate(extent.matrix_size)};
  std::printf("copies: %.0f GB/s; fp16 products: ", rates.copy / 1e9);
  if (rates.matrix > 0) {
    std::printf("%.0f TFLOP/s\n", rates.matrix / 1e12);
  } else {
    std::printf("not measured, no cuBLAS here\n");
  }
  std::printf("%-36s %-16s %10s %10s %8s %10s %8s\n", "step", "variant", "us", "GB/s", "% copy",
              "TFLOP/s", "% matrix");
  for (const Workload* w : steps) print_step(*w, extent, copies, rates);
}

}  // namespace kvattn::bench
