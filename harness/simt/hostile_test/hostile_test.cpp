// Damaged PTX and fat binaries on the CPU device: an error, a finding or an end, never a crash, a
// hang or memory without limit.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "harness/simt/hostile_test/damage.h"
#include "harness/simt/hostile_test/victim.h"
#include "harness/simt/ptx/fatbin.h"

extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace kv::simt::hostile {
namespace {

constexpr uint64_t kSample = 1000, kThousands = 20000;
constexpr long kResidentKibMax = 3l << 20;  // the sanitizers' own shadow and quarantine included

uint64_t current_mutant = 0;

void say_which() {
  char text[64];
  const int bytes = snprintf(text, sizeof text, "died of mutant %llu\n",
                             static_cast<unsigned long long>(current_mutant));
  (void)!write(STDERR_FILENO, text, size_t(bytes));
}

void on_signal(int number) {
  say_which();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Damaged text on standard output helps nobody.
bool prints(const std::string& text) { return text.find("vprintf") != text.npos; }

struct Fates {
  uint64_t refused = 0, not_runnable = 0, ran = 0;
  void count(Fate fate) {
    refused += fate == Fate::kRefused;
    not_runnable += fate == Fate::kNotRunnable;
    ran += fate == Fate::kRan;
  }
  uint64_t tried() const { return refused + not_runnable + ran; }
};

class Hostile : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(say_which);
    for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) {
      std::signal(number, on_signal);
    }
    for (const char* path : {KV_PROGRAMS}) {
      for (Bytes& fatbin : fatbins_of(path)) {
        const std::vector<std::string> modules = texts_of(fatbin);
        if (std::any_of(modules.begin(), modules.end(), prints)) continue;
        for (const std::string& text : modules) {
          for (std::string& kernel : kernels_of(text)) texts.push_back(std::move(kernel));
        }
        fatbins.push_back(std::move(fatbin));
      }
    }
  }

  /// Tries `sample` mutants, or with KV_FULL all `thousands`.
  template <class Try>
  static Fates mutants(Try&& try_one) {
    const bool full = std::getenv("KV_FULL") != nullptr;
    const uint64_t first = number_from("KV_MUTANT_FIRST", 0);
    const uint64_t count = number_from("KV_MUTANTS", full ? kThousands : kSample);
    Fates fates;
    for (current_mutant = first; current_mutant < first + count; ++current_mutant) {
      Choices choices(current_mutant);
      fates.count(try_one(choices));
      if (HasFailure()) {
        ADD_FAILURE() << "by mutant " << current_mutant;
        break;
      }
    }
    printf("%llu mutants: %llu refused, %llu not runnable, %llu ran\n",
           static_cast<unsigned long long>(fates.tried()),
           static_cast<unsigned long long>(fates.refused),
           static_cast<unsigned long long>(fates.not_runnable),
           static_cast<unsigned long long>(fates.ran));
    return fates;
  }

  static void expect_bounded_memory() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    EXPECT_LT(usage.ru_maxrss, kResidentKibMax);
  }

  static inline std::vector<Bytes> fatbins;
  static inline std::vector<std::string> texts;
};

TEST_F(Hostile, TheUndamagedRun) {
  ASSERT_GE(fatbins.size(), 10u);
  ASSERT_GE(texts.size(), 60u);
  size_t ran = 0;
  for (const std::string& text : texts) {
    Choices choices(ran);
    ran += run_text(text, choices) == Fate::kRan;
  }
  EXPECT_EQ(ran, texts.size());
  expect_bounded_memory();
}

TEST_F(Hostile, DamagedText) {
  const Fates fates =
      mutants([](Choices& choices) { return run_text(damaged_text(texts, choices), choices); });
  if (fates.tried() >= kSample) {  // both the parser and what lies behind it were reached
    EXPECT_GT(fates.refused, fates.tried() / 5);
    EXPECT_GT(fates.ran, fates.tried() / 5);
    EXPECT_GT(fates.not_runnable, 0u);
  }
  expect_bounded_memory();
}

TEST_F(Hostile, DamagedFatBinaries) {
  const Fates fates = mutants([](Choices& choices) {
    const Bytes bytes = damaged_bytes(fatbins, choices);
    const auto entries = ptx::read_fatbin(bytes);
    if (!entries.ok()) return Fate::kRefused;
    auto text = ptx::select_ptx(*entries, 90);
    return text.ok() ? run_text(std::move(text).value(), choices) : Fate::kRefused;
  });
  if (fates.tried() >= kSample) {
    EXPECT_GT(fates.refused, fates.tried() / 5);
  }
  expect_bounded_memory();
}

}  // namespace
}  // namespace kv::simt::hostile
