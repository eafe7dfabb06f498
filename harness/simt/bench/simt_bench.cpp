// How fast the CPU device is. Figures are for people: nothing compares them.
//   build/bin/simt_bench [instructions|checks|cases|all] [--beside COMMAND]
// COMMAND runs the same kernels elsewhere and prints "NAME SECONDS" for each of the names below; it
// is run in turn with our own measurements, see beside_prototype.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "harness/core/check.h"
#include "harness/simt/bench/flash_case.h"
#include "harness/simt/bench/instructions.h"

namespace kv::simt::bench {
namespace {

constexpr uint32_t kAll = KV_SIMT_CHECK_ALL & ~uint32_t{KV_SIMT_CHECK_LEAK};
/// What the prototype checks. Definedness of registers stays: it costs nothing until something is
/// undefined.
constexpr uint32_t kOfPrototype =
    KV_SIMT_CHECK_MEMORY | KV_SIMT_CHECK_UNDEFINED | KV_SIMT_CHECK_BLOCK_RACE;

struct CheckSet {
  const char* name;
  uint32_t checks;
};
constexpr CheckSet kCheckSets[] = {
    {"none", 0},
    {"memory", KV_SIMT_CHECK_MEMORY},
    {"undefined", KV_SIMT_CHECK_UNDEFINED},
    {"race", KV_SIMT_CHECK_RACE},
    {"barrier", KV_SIMT_CHECK_BARRIER},
    {"async", KV_SIMT_CHECK_ASYNC},
    {"prototype's", kOfPrototype},
    {"all", kAll},
};

/// Processor time of this process: other work on the machine is not in it.
double now() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}
template <class F>
double seconds(F run) {
  const double begin = now();
  run();
  return now() - begin;
}
/// The least of several runs, each of `repeats` calls.
template <class F>
double least(int runs, int repeats, F run) {
  double best = 1e9;
  for (int k = 0; k < runs; ++k) {
    const double all = seconds([&] {
      for (int r = 0; r < repeats; ++r) run();
    });
    best = std::min(best, all / repeats);
  }
  return best;
}

/// Nanoseconds of one warp instruction.
double time_class(Kernel* kernel, uint32_t checks) {
  Device& device = Device::instance();
  device.reset();
  kv_simt_config config = device.config();
  config.checks = checks;
  KV_CHECK(device.configure(config).ok(), "configure");
  const std::vector<uint8_t> ones(kBufferBytes, 1);
  const uint64_t buffer = *device.allocate(ones.size());
  KV_CHECK(device.copy(buffer, reinterpret_cast<uint64_t>(ones.data()), ones.size()).ok(), "copy");
  const auto* bytes = reinterpret_cast<const uint8_t*>(&buffer);
  const double time = least(7, 3, [&] {
    const auto status = device.launch({.kernel = kernel,
                                       .grid = {2, 1, 1},
                                       .block = {32, 1, 1},
                                       .parameters = {bytes, sizeof buffer}});
    KV_CHECK(status.ok() && *status == LaunchStatus::kCompleted, "the kernel did not complete");
  });
  if (device.finding_count()) std::printf("  ! %s\n", device.findings()[0].message);
  return time * 1e9 / (2.0 * kBodies * kLoops);
}

void print_instructions() {
  std::printf("%-34s %10s %10s %7s\n", "instruction, 32 lanes", "unchecked", "checked", "ratio");
  for (const InstructionClass& what : instruction_classes()) {
    Device& device = Device::instance();
    const auto module = device.load_module(module_of(what));
    KV_CHECK(module.ok(), what.name + ": " + module.error().message);
    Kernel* const kernel = *device.find_kernel(*module, "k");
    const double plain = time_class(kernel, 0) / what.per_body;
    const double checked = time_class(kernel, kAll) / what.per_body;
    std::printf("%-34s %7.1f ns %7.1f ns %7.2f\n", what.name.c_str(), plain, checked,
                checked / plain);
    device.unload_module(*module);
  }
}

double time_launch(FlashCase& flash, uint32_t warps, uint32_t checks) {
  KV_CHECK(flash.prepare(checks), "the case cannot be prepared");
  return least(15, 20, [&] { KV_CHECK(flash.launch(warps), "the kernel did not complete"); });
}

void print_checks(FlashCase& flash) {
  for (uint32_t warps : {1u, 4u}) {
    std::printf("\nflash, 8 x 64 x 64 x 4 heads, %u warp(s) for each block: one launch\n", warps);
    double plain = 0;
    for (const CheckSet& set : kCheckSets) {
      const double time = time_launch(flash, warps, set.checks);
      if (set.checks == 0) plain = time;
      std::printf("  checks: %-12s %8.4f ms %7.2f\n", set.name, time * 1e3, time / plain);
    }
  }
}

void print_cases(FlashCase& flash) {
  std::printf("\nwhole cases: reset, allocate, upload, launch, download\n");
  for (uint32_t warps : {1u, 4u}) {
    for (uint32_t checks : {0u, kAll}) {
      double sum = 0;
      const double time = least(15, 20, [&] {
        KV_CHECK(flash.prepare(checks) && flash.launch(warps), "the case failed");
        sum += flash.output_sum();
      });
      KV_CHECK(sum > 0, "nothing was computed");
      std::printf("  %u warp(s), %-9s %8.4f ms = %6.0f cases/s\n", warps,
                  checks ? "checked" : "unchecked", time * 1e3, 1 / time);
    }
  }
}

using Times = std::map<std::string, double>;

void keep_least(Times& times, const std::string& name, double time) {
  const auto [entry, fresh] = times.emplace(name, time);
  if (!fresh) entry->second = std::min(entry->second, time);
}

/// One run of COMMAND.
void run_other(const std::string& command, Times& times) {
  FILE* const pipe = popen(command.c_str(), "r");
  KV_CHECK(pipe != nullptr, "cannot run " + command);
  char name[64];
  double time = 0;
  while (std::fscanf(pipe, "%63s %lf", name, &time) == 2) keep_least(times, name, time);
  KV_CHECK(pclose(pipe) == 0, command + " failed");
}

void print_beside(FlashCase& flash, const std::string& command) {
  Times ours, theirs;
  for (int round = 0; round < 5; ++round) {
    run_other(command, theirs);
    for (uint32_t warps : {1u, 4u}) {
      const std::string name = "flash_" + std::to_string(warps);
      keep_least(ours, name + "_unchecked", time_launch(flash, warps, 0));
      keep_least(ours, name + "_alike", time_launch(flash, warps, kOfPrototype));
      keep_least(ours, name + "_checked", time_launch(flash, warps, kAll));
    }
  }
  std::printf("\nbeside %s: the same PTX, in turn; ratio above 1: ours is faster\n",
              command.c_str());
  std::printf("_alike: only the checks that theirs has too, beside its _checked\n");
  for (const auto& [name, time] : ours) {
    const size_t alike = name.find("_alike");
    const auto other = theirs.find(alike == name.npos ? name : name.substr(0, alike) + "_checked");
    KV_CHECK(other != theirs.end(), command + " printed no " + name);
    std::printf("  %-20s ours %8.4f ms, theirs %8.4f ms, ratio %5.2f\n", name.c_str(), time * 1e3,
                other->second * 1e3, other->second / time);
  }
}

int run(int count, char** words) {
  std::string what = "all", beside;
  for (int k = 1; k < count; ++k) {
    if (!std::strcmp(words[k], "--beside") && k + 1 < count) {
      beside = words[++k];
    } else {
      what = words[k];
    }
  }
  if (what != "all" && what != "instructions" && what != "checks" && what != "cases") {
    std::fprintf(stderr, "usage: simt_bench [instructions|checks|cases|all] [--beside COMMAND]\n");
    return 2;
  }
  std::ifstream file(KV_FLASH_PTX);
  FlashCase flash(std::string(std::istreambuf_iterator<char>(file), {}));
  if (what == "all" || what == "instructions") print_instructions();
  if (what == "all" || what == "checks") print_checks(flash);
  if (what == "all" || what == "cases") print_cases(flash);
  if (!beside.empty()) print_beside(flash, beside);
  return 0;
}

}  // namespace
}  // namespace kv::simt::bench

int main(int count, char** words) { return kv::simt::bench::run(count, words); }
