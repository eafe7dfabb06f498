// kvattn_bench: what attention steps cost.
// Usage: kvattn_bench [NAME ...]
//          On a GPU: microseconds, fraction of the measured copy bandwidth and of the measured
//          matrix rate. Without one: exact counters of the CPU device, and a roofline estimate,
//          marked as one.
//        kvattn_bench --counters [--check] [NAME ...]
//          Counters on any machine; with --check, whether they keep the limits.
//        kvattn_bench --list
//          What each step has to do at least, as JSON; no device is needed.
//        kvattn_bench --once NAME
//          Runs a step a single time and prints nothing: for `kverify exec --profile`.
//        kvattn_bench --trial [NAME ...]
//          The measurement, small and on any device, to test this program; its times mean nothing.
// Exit code: 0, 1 when a limit is missed, 2 for bad input, 3 when this machine lacks something.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "impl/bench/step.h"
#include "impl/bench/times.h"

namespace kvattn::bench {
namespace {

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
    std::printf("\"mode\": \"%s\", \"has_mask\": %s, \"is_latent\": %s, ", mode_name(w.mode),
                w.has_hidden_runs ? "true" : "false", w.is_latent() ? "true" : "false");
    std::printf("\"window_left\": %lld, \"cache\": \"%s\", \"whole_sectors\": %s}",
                static_cast<long long>(w.window_left), dtype_name(w.cache),
                w.has_whole_sectors() ? "true" : "false");
  }
  std::printf("\n]\n");
}

[[noreturn]] void bad_usage(const char* expected, const std::string& got) {
  std::fprintf(stderr, "kvattn_bench: error: expected %s, got '%s'\n", expected, got.c_str());
  std::exit(2);
}

const Workload& find(const std::string& name) {
  for (const Workload& w : workloads()) {
    if (name == w.name) return w;
  }
  bad_usage("a step of --list", name);
}

void run_once(const Workload& w) {
  Step step(w, multiprocessors(), 1);
  step.launch(0);
  check(cudaDeviceSynchronize(), w.name);
}

/// Whether CUDA's driver knows a device, whichever runtime this program has found.
bool driver_has_gpu() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return false;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int devices = 0;
  return init != nullptr && count != nullptr && init(0) == 0 && count(&devices) == 0 && devices > 0;
}

/// Says why not, on stderr.
bool runs_on_gpu() {
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, 0); error != cudaSuccess) {
    std::fprintf(stderr, "kvattn_bench: no GPU: %s\n", cudaGetErrorString(error));
    return false;
  }
  if (std::strstr(properties.name, "kverify") == nullptr) return true;
  if (driver_has_gpu()) {
    std::fprintf(stderr,
                 "kvattn_bench: there is a GPU, but the runtime found is the CPU device; name the "
                 "folder of CUDA's libcudart.so.13 in LD_LIBRARY_PATH to measure times\n");
  }
  return false;
}

/// Becomes the program that counts, which lies beside this one.
[[noreturn]] void become_counters(std::vector<std::string> arguments) {
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
  const std::string program = own.parent_path() / "kvattn_counters";
  arguments.insert(arguments.begin(),
                   {program, "--build", own.parent_path().parent_path().string()});
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  std::fflush(nullptr);
  execv(program.c_str(), pointers.data());
  fail(program + ": expected a program that counts, got: " + std::strerror(errno));
}

int run(const std::vector<std::string>& arguments) {
  const std::string first = arguments.empty() ? "" : arguments[0];
  if (first == "--list" && arguments.size() == 1) {
    list();
    return 0;
  }
  if (first == "--once" && arguments.size() == 2) {
    run_once(find(arguments[1]));
    return 0;
  }
  const bool counts = first == "--counters", is_trial = first == "--trial";
  if (first.starts_with("--") && !counts && !is_trial) {
    bad_usage("--counters, --list, --once NAME, --trial or names of steps", first);
  }
  std::vector<std::string> rest(arguments.begin() + (counts || is_trial), arguments.end());
  if (counts && !rest.empty() && rest[0] == "--check") {
    for (size_t i = 1; i < rest.size(); ++i) find(rest[i]);
    become_counters(rest);
  }
  std::vector<const Workload*> chosen;
  for (const std::string& name : rest) chosen.push_back(&find(name));
  if (counts || !(is_trial || runs_on_gpu())) become_counters(rest);
  for (const Workload& w : workloads()) {
    if (rest.empty()) chosen.push_back(&w);
  }
  print_times(chosen, is_trial ? kTrial : kWhole);
  return 0;
}

}  // namespace
}  // namespace kvattn::bench

int main(int argc, char** argv) {
  return kvattn::bench::run(std::vector<std::string>(argv + 1, argv + argc));
}
