// The census reads sets back exactly: one key lost, seen twice or swapped is named; none is silent.
#include "harness/relation/census.h"

#include <gtest/gtest.h>

#include "harness/judge/fake_worker.h"

namespace kv {
namespace {

std::optional<Failure> read_back(const FakeFaults& faults) {
  Case c = small_case();
  c.data.design = Design::kCensus;
  const Observation o = fake_observation(c, faults);
  return wrong_census({c, o.ops});
}

TEST(Census, IsSilentForTheVisibleSet) { EXPECT_FALSE(read_back({}).has_value()); }

TEST(Census, NamesALostKey) {
  FakeFaults faults;
  faults.visible = [](const PlannedRow& row, uint32_t, std::vector<uint8_t>& visible) {
    if (row.kv_length > 6) visible[5] = 0;
  };
  const auto failure = read_back(faults);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->failure_class, "census");
}

TEST(Census, NamesAKeyOfTheFuture) {
  FakeFaults faults;
  faults.visible = [](const PlannedRow&, uint32_t, std::vector<uint8_t>& visible) {
    for (size_t i = 1; i < visible.size(); ++i)
      if (visible[i] == 0) {
        visible[i] = 1;
        return;
      }
  };
  EXPECT_TRUE(read_back(faults).has_value());
}

}  // namespace
}  // namespace kv
