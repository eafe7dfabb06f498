#include "harness/simt/cudart/environment.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "harness/simt/control/check_names.h"

namespace kv::simt::cudart {
namespace {

constexpr uint64_t kTimeLimitMax = 1'000'000;  // seconds

Error bad_value(const char* variable, std::string_view got, const char* expected) {
  return bad_input(std::string("environment variable ") + variable + ": expected " + expected +
                   ", got \"" + std::string(got) + "\"");
}

std::optional<uint64_t> integer_of(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<uint32_t> read_model(std::string_view text) {
  const auto sm = integer_of(text);
  if (sm == 80 || sm == 89 || sm == 90) return static_cast<uint32_t>(*sm);
  return bad_value("KV_SIMT_MODEL", text, "80, 89 or 90");
}

Result<uint64_t> read_seed(std::string_view text) {
  const auto seed = integer_of(text);
  if (seed) return *seed;
  return bad_value("KV_SIMT_SEED", text, "an unsigned 64-bit integer");
}

Result<uint64_t> read_time_limit(std::string_view text) {
  const auto seconds = integer_of(text);
  if (seconds && *seconds <= kTimeLimitMax) return *seconds;
  return bad_value("KV_SIMT_TIME_LIMIT", text, "whole seconds, at most 1000000");
}

Result<uint32_t> read_checks(std::string_view text) {
  if (const auto checks = checks_named(text)) return *checks;
  return bad_value("KV_SIMT_CHECKS", text, kCheckNamesExpected);
}

}  // namespace

Result<Environment> read_environment(const std::function<const char*(const char*)>& variable,
                                     const kv_simt_config& defaults) {
  Environment environment{.config = defaults,
                          .report = {},
                          .report_json = {},
                          .profile = {},
                          .lcov = {},
                          .time_limit_s = 0};
  kv_simt_config& config = environment.config;
  const char* const model = variable("KV_SIMT_MODEL");
  const char* const seed = variable("KV_SIMT_SEED");
  const char* const checks = variable("KV_SIMT_CHECKS");
  const char* const report = variable("KV_SIMT_REPORT");
  KV_ASSIGN_OR_RETURN(config.model_sm, model ? read_model(model) : config.model_sm);
  KV_ASSIGN_OR_RETURN(config.schedule_seed, seed ? read_seed(seed) : config.schedule_seed);
  KV_ASSIGN_OR_RETURN(config.checks, checks ? read_checks(checks) : config.checks);
  const auto path = [&](const char* name) {
    const char* const value = variable(name);
    return std::string(value ? value : "");
  };
  const char* const limit = variable("KV_SIMT_TIME_LIMIT");
  KV_ASSIGN_OR_RETURN(environment.time_limit_s, limit ? read_time_limit(limit) : uint64_t{0});
  if (report) environment.report = report;
  environment.report_json = path("KV_SIMT_REPORT_JSON");
  environment.profile = path("KV_SIMT_PROFILE");
  environment.lcov = path("KV_SIMT_LCOV");
  if (!environment.profile.empty() || !environment.lcov.empty()) {
    config.collect |= KV_SIMT_COLLECT_PROFILE;
  }
  return environment;
}

}  // namespace kv::simt::cudart
