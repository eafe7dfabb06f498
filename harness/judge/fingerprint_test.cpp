#include "harness/judge/fingerprint.h"

#include <gtest/gtest.h>

#include "harness/judge/judge_fixture.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv {
namespace {

TEST(Fingerprint, KernelFamilyIsTheNameWithoutArguments) {
  EXPECT_EQ(kernel_family("void kvattn::attend_mma_kernel<__half, 128, 1>(kvattn::AttendParams)"),
            "kvattn::attend_mma_kernel");
  EXPECT_EQ(kernel_family("void a::(anonymous namespace)::append<unsigned short>(a::Params)"),
            "a::append");
  EXPECT_EQ(kernel_family("append"), "append");
  EXPECT_EQ(kernel_family(""), "");
}

TEST(Fingerprint, ExactAndIntervalValuesAreOneProperty) {
  Verdict a, b;
  a.stage = Stage::kExact;
  b.stage = Stage::kInterval;
  a.failure_class = b.failure_class = "output-value";
  EXPECT_EQ(fingerprint_of({}, a), fingerprint_of({}, b));
}

TEST(Fingerprint, TellsClassesVariantsAndKernelsApart) {
  const Case c = small_case();
  const Verdict v = judge(c, dropped_key());
  ASSERT_EQ(v.outcome, Outcome::kFail);
  const Fingerprint f = fingerprint_of(c, v);
  EXPECT_TRUE(is_fingerprint_text(f.text()));
  EXPECT_EQ(f.operation, "step");
  EXPECT_NE(f.text().find("output-value"), std::string::npos) << f.text();
  Verdict other = v;
  other.variant += "2";
  EXPECT_NE(fingerprint_of(c, other), f);
  other = v;
  other.failure_class = "lse-value";
  EXPECT_NE(fingerprint_of(c, other), f);
}

TEST(Fingerprint, TakesTheKernelOfTheDecidingFinding) {
  Verdict v;
  v.stage = Stage::kDevice;
  v.failure_class = "device:out-of-bounds";
  v.findings.resize(2);
  v.findings[0].kind = KV_SIMT_KIND_RACE;
  v.findings[0].kernel = "harmless";
  v.findings[1].kind = KV_SIMT_KIND_OUT_OF_BOUNDS;
  v.findings[1].kernel = "void guilty<3>(int)";
  EXPECT_EQ(fingerprint_of({}, v).kernel, "guilty");
}

}  // namespace
}  // namespace kv
