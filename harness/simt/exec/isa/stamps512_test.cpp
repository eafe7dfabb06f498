// Stamps of whole warps are those that the lanes one by one leave. Fails where a comparison, a mark
// or the order of two lanes at one chunk is taken wrongly.
#include <gtest/gtest.h>

#include <cstdint>

namespace kv::simt::avx512 {
void compare_stamps(uint64_t seed, uint32_t count, uint32_t (*out)[2]);
}

namespace kv::simt {
namespace {

TEST(Stamps512, AWarpLeavesWhatItsLanesWould) {
  if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq")) {
    GTEST_SKIP() << "this processor has no AVX-512";
  }
  constexpr uint32_t kRounds = 20000;
  uint32_t seen[8][2] = {};
  avx512::compare_stamps(1, kRounds, seen);
  for (int kind = 0; kind < 8; ++kind) {
    EXPECT_GT(seen[kind][0], kRounds / 20) << "kind " << kind << " is hardly ever settled at once";
    EXPECT_LT(seen[kind][0], kRounds) << "kind " << kind << " is always settled";
    EXPECT_EQ(seen[kind][1], 0u) << "kind " << kind;
  }
}

}  // namespace
}  // namespace kv::simt
