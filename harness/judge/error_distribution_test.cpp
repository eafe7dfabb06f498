// Fails when a quantile is off by more than a bucket, or when a NaN or a zero is lost.
#include "harness/judge/error_distribution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kv {
namespace {

TEST(ErrorDistribution, QuantilesAreThoseOfTheNumbersToOneBucket) {
  ErrorDistribution d;
  for (int i = 1; i <= 1000; ++i) d.add(i / 1000.0);
  for (const double share : {0.01, 0.5, 0.9, 0.99, 1.0}) {
    EXPECT_GE(d.quantile(share), share);
    EXPECT_LE(d.quantile(share), share * 1.14);
  }
  EXPECT_EQ(d.count(), 1000u);
  EXPECT_EQ(d.largest(), 1.0);
}

TEST(ErrorDistribution, ZeroTinyHugeAndNoNumber) {
  ErrorDistribution d;
  EXPECT_EQ(d.quantile(0.5), 0);
  for (const double ratio : {0.0, 1e-30, 1e-300}) d.add(ratio);
  EXPECT_EQ(d.exact(), 3u);
  EXPECT_EQ(d.quantile(1), 0);
  d.add(1e9);
  EXPECT_EQ(d.quantile(1), 1e9);
  d.add(std::nan(""));
  EXPECT_EQ(d.largest(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(d.quantile(0.6), 0);
}

TEST(ErrorDistribution, MergedIsTheSameAsAddedTogether) {
  ErrorDistribution one, two, all;
  for (int i = 0; i < 100; ++i) {
    (i % 3 == 0 ? one : two).add(i * 0.01);
    all.add(i * 0.01);
  }
  one.merge(two);
  for (const double share : {0.1, 0.5, 0.99}) EXPECT_EQ(one.quantile(share), all.quantile(share));
  EXPECT_EQ(one.count(), all.count());
  EXPECT_EQ(one.largest(), all.largest());
}

}  // namespace
}  // namespace kv
