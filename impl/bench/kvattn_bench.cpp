// kvattn_bench: attention steps on a device: microseconds, fraction of the measured copy bandwidth
// and of the measured matrix rate. Usage: kvattn_bench [--list | --once NAME | [NAME ...]]
//   --list      what each step has to do at least, as JSON; no device is needed
//   --once      runs the step a single time and prints nothing: for `kverify exec --profile`
// K and V of a step lie in so many copies that they do not stay in a cache between two runs.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "impl/bench/matrix_rate.h"
#include "impl/bench/workloads.h"

namespace kvattn::bench {
namespace {

constexpr int kRuns = 30, kWarmUps = 3;
constexpr uint64_t kRotatedBytes = uint64_t{512} << 20;  // more than any cache on a device
constexpr uint64_t kCopyBytes = uint64_t{1} << 30;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "kvattn_bench: error: %s\n", what.c_str());
  std::exit(3);
}
void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(sentence(what, ": ", cudaGetErrorString(error)));
}
template <class T>
T checked(StatusOr<T> value) {
  if (!value.ok()) fail(value.status().text());
  return *std::move(value);
}

struct Freed {
  void operator()(void* p) const { cudaFree(p); }
};
using DeviceMemory = std::unique_ptr<void, Freed>;

/// Zeros.
DeviceMemory allocate(uint64_t bytes) {
  void* p = nullptr;
  check(cudaMalloc(&p, std::max<uint64_t>(bytes, 16)), "cudaMalloc");
  DeviceMemory memory(p);
  check(cudaMemset(p, 0, std::max<uint64_t>(bytes, 16)), "cudaMemset");
  return memory;
}
DeviceMemory upload(const std::vector<int32_t>& values) {
  DeviceMemory memory = allocate(values.size() * sizeof(int32_t));
  check(cudaMemcpy(memory.get(), values.data(), values.size() * sizeof(int32_t),
                   cudaMemcpyHostToDevice),
        "cudaMemcpy");
  return memory;
}

TensorView cache_view(const Workload& w, int64_t pages, void* data) {
  const int64_t slots = shape_of(w).page_slots, heads = w.kv_heads, dim = w.head_dim;
  TensorView view = dense_view(data, w.cache, {pages, slots, heads, dim}, 4);
  if (w.heads_outside) view.strides = {slots * heads * dim, dim, slots * dim, 1};
  return view;
}

/// Everything that a call of attend() takes, for `copies` caches.
class Step {
 public:
  Step(const Workload& w, uint32_t multiprocessors, int64_t copies) : shape_(shape_of(w)) {
    const int64_t table = (w.slots + shape_.page_slots - 1) / shape_.page_slots;
    const int64_t pages = table * w.requests, tokens = w.requests * w.queries;
    const uint64_t cache_bytes =
        pages * shape_.page_slots * w.kv_heads * w.head_dim * dtype_bytes(w.cache);
    describe(w);
    plan_ = checked(make_plan(shape_, {.query_lengths = query_lengths_,
                                       .kv_lengths = kv_lengths_,
                                       .multiprocessors = multiprocessors}));
    call_.query = tensor({tokens, w.query_heads, w.head_dim}, DType::kF16);
    call_.output = tensor({tokens, w.query_heads, w.head_dim}, DType::kF16);
    call_.lse = tensor({tokens, w.query_heads}, DType::kF32);
    call_.query_offsets = indices(offsets_);
    call_.kv_lengths = call_.key_end = indices(kv_lengths_);
    call_.key_begin = indices(std::vector<int32_t>(w.requests, 0));
    call_.workspace = keep(allocate(plan_.workspace_bytes));
    call_.cache.block_table = indices(shuffled_pages(pages));
    call_.cache.block_table.rank = 2;
    call_.cache.block_table.shape = {w.requests, table};
    call_.cache.block_table.strides = {table, 1};
    if (shape_.scales != ScaleGranularity::kNone) {
      call_.cache.key_scale = tensor({1}, DType::kF32);
      call_.cache.value_scale = call_.cache.key_scale;
      const float one = 1;
      check(cudaMemcpy(call_.cache.key_scale.data, &one, sizeof one, cudaMemcpyHostToDevice),
            "cudaMemcpy");
    }
    for (int64_t i = 0; i < copies; ++i) {
      caches_.push_back({cache_view(w, pages, keep(allocate(cache_bytes))),
                         cache_view(w, pages, keep(allocate(cache_bytes)))});
    }
  }

  /// Enqueues run number `run`.
  void launch(int64_t run) {
    const auto& [key, value] = caches_[run % caches_.size()];
    call_.cache.key = key;
    call_.cache.value = value;
    if (const Status status = attend(call_, plan_, shape_); !status.ok()) fail(status.text());
  }
  std::string_view variant() const { return variant_name(plan_); }

 private:
  void describe(const Workload& w) {
    query_lengths_.assign(w.requests, w.queries);
    kv_lengths_.assign(w.requests, w.slots);
    for (int64_t b = 0; b <= w.requests; ++b) {
      offsets_.push_back(static_cast<int32_t>(b * w.queries));
    }
  }
  /// A fixed permutation that leaves no two neighbours together.
  static std::vector<int32_t> shuffled_pages(int64_t pages) {
    int64_t step = pages / 2 + 1;
    while (std::gcd(pages, step) != 1) ++step;
    std::vector<int32_t> order(pages);
    for (int64_t i = 0; i < pages; ++i) order[i] = static_cast<int32_t>(i * step % pages);
    return order;
  }
  void* keep(DeviceMemory memory) {
    memory_.push_back(std::move(memory));
    return memory_.back().get();
  }
  TensorView tensor(std::vector<int64_t> shape, DType dtype) {
    std::array<int64_t, 4> extents = {};
    int64_t count = 1;
    for (size_t i = 0; i < shape.size(); ++i) count *= extents[i] = shape[i];
    return dense_view(keep(allocate(count * dtype_bytes(dtype))), dtype, extents,
                      static_cast<int>(shape.size()));
  }
  TensorView indices(const std::vector<int32_t>& values) {
    return dense_view(keep(upload(values)), DType::kI32, {static_cast<int64_t>(values.size())}, 1);
  }

  AttentionShape shape_;
  Plan plan_;
  AttendCall call_;
  std::vector<int32_t> query_lengths_, kv_lengths_, offsets_;
  std::vector<std::pair<TensorView, TensorView>> caches_;
  std::vector<DeviceMemory> memory_;
};

/// Median microseconds of `launch(run)`, each run between two events.
template <class Launch>
double median_us(Launch launch) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> times;
  for (int run = 0; run < kWarmUps + kRuns; ++run) {
    check(cudaEventRecord(begin, nullptr), "cudaEventRecord");
    launch(run);
    check(cudaEventRecord(end, nullptr), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (run >= kWarmUps) times.push_back(ms * 1000);
  }
  check(cudaEventDestroy(begin), "cudaEventDestroy");
  check(cudaEventDestroy(end), "cudaEventDestroy");
  std::ranges::nth_element(times, times.begin() + kRuns / 2);
  return times[kRuns / 2];
}

/// Bytes read and written in a second by a copy within the device.
double copy_rate() {
  const DeviceMemory from = allocate(kCopyBytes), to = allocate(kCopyBytes);
  const double us = median_us([&](int) {
    check(cudaMemcpyAsync(to.get(), from.get(), kCopyBytes, cudaMemcpyDeviceToDevice, nullptr),
          "cudaMemcpyAsync");
  });
  return 2.0 * kCopyBytes / us * 1e6;
}

struct Rates {
  uint32_t multiprocessors;
  double copy;    // bytes/s
  double matrix;  // flop/s; 0: cuBLAS is not there
};

void measure(const Workload& w, const Rates& rates) {
  const Least least = least_of(w);
  const uint64_t pool = 2 * w.requests * w.slots * w.kv_heads * w.head_dim * dtype_bytes(w.cache);
  Step step(w, rates.multiprocessors, static_cast<int64_t>(kRotatedBytes / pool) + 1);
  const double us = median_us([&](int run) { step.launch(run); });
  const double bytes = static_cast<double>(pool + least.query_and_output_bytes) / us * 1e6;
  const double flops = static_cast<double>(least.flops) / us * 1e6;
  std::printf("%-26s %-16s %10.1f %10.1f %8.1f %10.2f", w.name, std::string(step.variant()).c_str(),
              us, bytes / 1e9, 100 * bytes / rates.copy, flops / 1e12);
  if (rates.matrix > 0) std::printf(" %8.1f", 100 * flops / rates.matrix);
  std::printf("\n");
}

uint32_t multiprocessors() {
  int count = 0;
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0),
        "cudaDeviceGetAttribute");
  return static_cast<uint32_t>(count);
}

void print_field(const char* name, uint64_t value) {
  std::printf("\"%s\": %llu, ", name, static_cast<unsigned long long>(value));
}

void list() {
  std::printf("[");
  for (const Workload& w : workloads()) {
    const Least least = least_of(w);
    std::printf("%s\n  {\"name\": \"%s\", ", &w == workloads().data() ? "" : ",", w.name);
    print_field("requests", w.requests);
    print_field("query_heads", w.query_heads);
    print_field("kv_heads", w.kv_heads);
    print_field("head_dim", w.head_dim);
    print_field("queries", w.queries);
    print_field("slots", w.slots);
    print_field("kv_bytes", least.kv_bytes);
    print_field("query_and_output_bytes", least.query_and_output_bytes);
    print_field("flops", least.flops);
    print_field("mma", least.mma);
    std::printf("\"window_left\": %lld, \"cache\": \"%s\", \"whole_sectors\": %s}",
                static_cast<long long>(w.window_left), dtype_name(w.cache),
                w.has_whole_sectors() ? "true" : "false");
  }
  std::printf("\n]\n");
}

const Workload& find(const char* name) {
  for (const Workload& w : workloads()) {
    if (std::strcmp(w.name, name) == 0) return w;
  }
  std::fprintf(stderr, "kvattn_bench: error: expected a workload of --list, got '%s'\n", name);
  std::exit(2);
}

void run_once(const Workload& w) {
  Step step(w, multiprocessors(), 1);
  step.launch(0);
  check(cudaDeviceSynchronize(), w.name);
}

void refuse_cpu_device() {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  if (std::strstr(properties.name, "kverify") != nullptr)
    fail("times on the CPU device say nothing; expected a GPU. impl/bench/counters counts there");
}

void measure_all(const std::vector<const Workload*>& chosen) {
  refuse_cpu_device();
  const Rates rates = {multiprocessors(), copy_rate(), matrix_rate()};
  std::printf("copies: %.0f GB/s; fp16 products: ", rates.copy / 1e9);
  if (rates.matrix > 0) {
    std::printf("%.0f TFLOP/s\n", rates.matrix / 1e12);
  } else {
    std::printf("not measured, no cuBLAS here\n");
  }
  std::printf("%-26s %-16s %10s %10s %8s %10s %8s\n", "step", "variant", "us", "GB/s", "% copy",
              "TFLOP/s", "% matrix");
  for (const Workload* w : chosen) measure(*w, rates);
}

}  // namespace
}  // namespace kvattn::bench

int main(int argc, char** argv) {
  using namespace kvattn::bench;
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    list();
    return 0;
  }
  if (argc == 3 && std::strcmp(argv[1], "--once") == 0) {
    run_once(find(argv[2]));
    return 0;
  }
  std::vector<const Workload*> chosen;
  for (int i = 1; i < argc; ++i) chosen.push_back(&find(argv[i]));
  for (const Workload& w : workloads()) {
    if (argc == 1) chosen.push_back(&w);
  }
  measure_all(chosen);
}
