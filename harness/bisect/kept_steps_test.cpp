// Fails when a result is lost, belongs to another search, or a torn line ends the next run.
#include "harness/bisect/kept_steps.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace kv {
namespace {

class KeptStepsTest : public testing::Test {
 protected:
  KeptStepsTest() : path_(testing::TempDir() + "/kept-" + std::to_string(getpid())) {}
  ~KeptStepsTest() override { std::remove(path_.c_str()); }
  KeptSteps opened(const std::string& search) const {
    auto kept = KeptSteps::open(path_, search);
    EXPECT_TRUE(kept.ok()) << kept.error().message;
    return std::move(kept).value();
  }
  std::string path_;
};

TEST_F(KeptStepsTest, KeepsResultsOfItsOwnSearch) {
  ASSERT_TRUE(opened("one").add("abc", "pass\t\t\x01 \"text\"").ok());
  ASSERT_TRUE(opened("two").add("abc", "fail").ok());
  EXPECT_EQ(opened("one").result_of("abc"), "pass\t\t\x01 \"text\"");
  EXPECT_EQ(opened("two").result_of("abc"), "fail");
  EXPECT_EQ(opened("three").result_of("abc"), std::nullopt);
}

TEST_F(KeptStepsTest, ATornLineIsNotThere) {
  ASSERT_TRUE(opened("one").add("abc", "pass").ok());
  std::ofstream(path_, std::ios::app) << "{\"commit\":\"def";
  KeptSteps kept = opened("one");
  ASSERT_TRUE(kept.add("ghi", "fail").ok());
  EXPECT_EQ(opened("one").result_of("abc"), "pass");
  EXPECT_EQ(opened("one").result_of("ghi"), "fail");
}

TEST_F(KeptStepsTest, RefusesAnotherFile) {
  for (const char* text : {"hello\n", "{}\n", "[1]\n", "{\"commit\":1,\"result\":\"x\"}\n"}) {
    std::ofstream(path_) << text;
    EXPECT_FALSE(KeptSteps::open(path_, "one").ok()) << text;
  }
}

TEST_F(KeptStepsTest, WithoutAFileNothingIsKept) {
  auto kept = KeptSteps::open("", "one");
  ASSERT_TRUE(kept.ok());
  EXPECT_TRUE(kept->add("abc", "pass").ok());
  EXPECT_EQ(kept->result_of("abc"), "pass");
}

}  // namespace
}  // namespace kv
