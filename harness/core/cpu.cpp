#include "harness/core/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace kv {
namespace {

constexpr const char* kVariable = "KVERIFY_CPU";

std::string_view wish() {
  const char* const value = std::getenv(kVariable);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

std::optional<Cpu> cpu_named(std::string_view name) {
  if (name == "portable") return Cpu::kPortable;
  if (name == "avx2") return Cpu::kAvx2;
  if (name == "avx512") return Cpu::kAvx512;
  return std::nullopt;
}

#if defined(__x86_64__)

/// clang 14 does not know F16C by name. That the registers are kept, which F16C needs as AVX2 does,
/// is asked with that.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

Cpu find_best() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
    return Cpu::kPortable;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return avx512 ? Cpu::kAvx512 : Cpu::kAvx2;
}

#else

Cpu find_best() { return Cpu::kPortable; }

#endif

}  // namespace

Cpu best_cpu() {
  static const Cpu best = find_best();
  return best;
}

Cpu chosen_cpu() {
  static const Cpu chosen = std::min(best_cpu(), cpu_named(wish()).value_or(Cpu::kAvx512));
  return chosen;
}

Result<void> check_cpu_choice() {
  if (wish().empty() || cpu_named(wish())) return {};
  return bad_input(std::string(kVariable) + " is \"" + std::string(wish()) +
                   "\", expected portable, avx2, avx512 or nothing");
}

}  // namespace kv
