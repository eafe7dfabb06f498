// Runs flash.ptx on the prototype of the CPU device and prints what simt_bench --beside reads. Not
// part of the build: beside_prototype compiles it together with the prototype's sim.cpp.
//   prototype_flash FLASH.PTX
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sim.hpp>

#include "harness/simt/bench/flash_parameters.h"

namespace {

constexpr int kQueries = 8, kKeys = 64, kHeads = 4, kDim = 64;

/// Memory of the prototype's device, filled with halves between 0.125 and 2.
template <class T>
T* halves(sim::Device& device, size_t bytes) {
  auto* const words = static_cast<uint16_t*>(aligned_alloc(256, (bytes + 255) / 256 * 256));
  for (size_t k = 0; k < bytes / 2; ++k) words[k] = uint16_t(0x3000 + k * 2654435761u % 0x1000);
  device.add(words, bytes, true);
  return reinterpret_cast<T*>(words);
}

/// Processor time of this process, as simt_bench measures.
double now() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

double time_launch(sim::Kernel& kernel, uint32_t warps, FlashParameters& p, sim::Device& device) {
  double best = 1e9;
  sim::Report report;
  for (int run = 0; run < 15; ++run) {
    const double begin = now();
    for (int k = 0; k < 20; ++k) {
      sim::launch(kernel, {1, kHeads, 1}, {warps * 32, 1, 1}, flash_shared_bytes(warps),
                  reinterpret_cast<uint8_t*>(&p), device, report);
    }
    best = std::min(best, (now() - begin) / 20);
  }
  if (report.oob + report.uninit + report.race) std::fprintf(stderr, "it reports findings\n");
  return best;
}

}  // namespace

int main(int, char** words) {
  std::ifstream file(words[1]);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  sim::Device device;
  sim::Module* const module = sim::load(text, device, true);
  FlashParameters p = {};
  p.q = halves<const __half>(device, kQueries * kHeads * kDim * 2);
  p.k = halves<const __half>(device, kKeys * kHeads * kDim * 2);
  p.v = halves<const __half>(device, kKeys * kHeads * kDim * 2);
  p.o = halves<__half>(device, kQueries * kHeads * kDim * 2);
  p.lse = halves<float>(device, kQueries * kHeads * 4);
  p.queries = kQueries;
  p.keys = kKeys;
  p.query_row = p.key_row = kHeads * kDim;
  p.query_head = p.key_head = kDim;
  p.scale = 0.125f;
  for (uint32_t warps : {1u, 4u}) {
    const std::string name = "flash_" + std::to_string(warps);
    for (const bool check : {false, true}) {
      sim::CHECK = check;
      const double time = time_launch(module->k[name], warps, p, device);
      std::printf("%s_%s %.9f\n", name.c_str(), check ? "checked" : "unchecked", time);
    }
  }
}
