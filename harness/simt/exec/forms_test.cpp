// Which instruction set runs. CTest runs this once for each value of KVERIFY_CPU: it fails where
// the switch is not obeyed, and with it every test that compares instruction sets would compare
// nothing.
#include "harness/simt/exec/forms.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace kv::simt {
namespace {

std::string best() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return "portable";
  for (const bool has :
       {__builtin_cpu_supports("avx512f") != 0, __builtin_cpu_supports("avx512bw") != 0,
        __builtin_cpu_supports("avx512vl") != 0, __builtin_cpu_supports("avx512dq") != 0}) {
    if (!has) return "avx2";
  }
  return "avx512";
}

TEST(FormSet, IsTheBestUpToTheOneAskedFor) {
  const char* const wanted = std::getenv("KVERIFY_CPU");
  const std::string asked = wanted ? wanted : "";
  if (asked == "portable") {
    EXPECT_STREQ(form_set().name, "portable");
  } else if (asked == "avx2" && best() == "avx512") {
    EXPECT_STREQ(form_set().name, "avx2");
  } else {
    EXPECT_EQ(form_set().name, best());
  }
}

TEST(FormSet, EverySetHasTheSameForms) {
  size_t rows = 0;
  for (const FormRows& table : form_set().tables) rows += table.count;
  EXPECT_GT(rows, 500u);
  EXPECT_NE(find_form("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"), nullptr);
  EXPECT_EQ(find_form("no.such.form"), nullptr);
}

}  // namespace
}  // namespace kv::simt
