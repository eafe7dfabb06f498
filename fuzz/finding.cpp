#include "fuzz/finding.h"

#include <fmt/format.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>

#include "harness/case/json.h"
#include "harness/case/text_file.h"
#include "harness/core/hash.h"

extern "C" __attribute__((weak)) void __asan_set_error_report_callback(void (*)(const char*));

namespace kv::fuzzing {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

struct Running {
  std::string prefix = "./";
  std::span<const uint8_t> bytes;
  const Case* c = nullptr;
  uint64_t inputs = 0;
  bool written = false;
  struct sigaction before[std::size(kSignals)] = {};
};
Running& running() {
  static Running running;
  return running;
}

void write_finding(const Case& c) {
  Running& r = running();
  if (r.written) return;
  r.written = true;
  const std::string name = r.prefix + "finding-" + hex64(hash_bytes(std::as_bytes(r.bytes)));
  const std::string_view raw(reinterpret_cast<const char*>(r.bytes.data()), r.bytes.size());
  const bool both = write_text_file(name, raw).ok() && save_case(name + ".case.json", c).ok();
  const std::string text = fmt::format("fuzz: input {} of this run: {}{}.case.json\n", r.inputs,
                                       both ? "" : "could not write ", name);
  std::fputs(text.c_str(), stderr);
}

/// Not safe in a signal by the book; the process is lost anyway, and its case may be saved.
void on_death() {
  const Case* c = running().c;
  if (c != nullptr) write_finding(*c);
}

void on_signal(int number, siginfo_t*, void*) {
  on_death();
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (kSignals[i] == number) sigaction(number, &running().before[i], nullptr);
  }
  raise(number);
}

/// After libFuzzer's and the sanitizer's own, which then come second.
void watch_for_death() {
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], &action, &running().before[i]);
  }
  if (__asan_set_error_report_callback != nullptr) {
    __asan_set_error_report_callback([](const char*) { on_death(); });
  }
}

}  // namespace

void set_finding_prefix(std::string prefix) { running().prefix = std::move(prefix); }

void begin_input(std::span<const uint8_t> bytes) {
  Running& r = running();
  if (r.inputs == 0) watch_for_death();
  ++r.inputs;
  r.bytes = bytes;
  r.c = nullptr;
}

void running_case(const Case* c) { running().c = c; }

uint64_t inputs() { return running().inputs; }

void end_with_finding(const Case& c, const std::string& what) {
  std::fputs(fmt::format("fuzz: {}\n", what).c_str(), stderr);
  write_finding(c);
  std::abort();
}

}  // namespace kv::fuzzing
