#include "harness/simt/cudart/environment.h"

#include <gtest/gtest.h>

#include <map>

namespace kv::simt::cudart {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Environment> read(const Variables& variables) {
  kv_simt_config defaults = {};
  defaults.model_sm = 80;
  defaults.checks = KV_SIMT_CHECK_RACE;
  return read_environment(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      defaults);
}

TEST(Environment, NothingSetKeepsTheDefaults) {
  const auto environment = read({});
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(environment->config.model_sm, 80u);
  EXPECT_EQ(environment->config.checks, uint32_t{KV_SIMT_CHECK_RACE});
  EXPECT_EQ(environment->report, "");
}

TEST(Environment, EveryVariableIsRead) {
  const auto environment = read({{"KV_SIMT_MODEL", "90"},
                                 {"KV_SIMT_SEED", "18446744073709551615"},
                                 {"KV_SIMT_CHECKS", "memory,leak"},
                                 {"KV_SIMT_REPORT", "-"}});
  ASSERT_TRUE(environment.ok());
  EXPECT_EQ(environment->config.model_sm, 90u);
  EXPECT_EQ(environment->config.schedule_seed, ~uint64_t{0});
  EXPECT_EQ(environment->config.checks, uint32_t{KV_SIMT_CHECK_MEMORY | KV_SIMT_CHECK_LEAK});
  EXPECT_EQ(environment->report, "-");
}

TEST(Environment, AllAndNone) {
  EXPECT_EQ(read({{"KV_SIMT_CHECKS", "all"}})->config.checks, uint32_t{KV_SIMT_CHECK_ALL});
  EXPECT_EQ(read({{"KV_SIMT_CHECKS", "none"}})->config.checks, 0u);
}

TEST(Environment, ABadValueIsOneClearError) {
  const Variables bad[] = {
      {{"KV_SIMT_MODEL", "75"}},     {{"KV_SIMT_MODEL", ""}},
      {{"KV_SIMT_MODEL", "sm_80"}},  {{"KV_SIMT_SEED", "-1"}},
      {{"KV_SIMT_SEED", "1e3"}},     {{"KV_SIMT_SEED", "18446744073709551616"}},
      {{"KV_SIMT_CHECKS", "races"}}, {{"KV_SIMT_CHECKS", "memory,"}},
      {{"KV_SIMT_CHECKS", ""}},
  };
  for (const Variables& variables : bad) {
    const auto environment = read(variables);
    ASSERT_FALSE(environment.ok()) << variables.begin()->first << variables.begin()->second;
    const std::string& message = environment.error().message;
    EXPECT_NE(message.find(variables.begin()->first), std::string::npos) << message;
    EXPECT_NE(message.find("got \"" + variables.begin()->second + "\""), std::string::npos);
  }
}

}  // namespace
}  // namespace kv::simt::cudart
