#include "harness/simt/cudart/environment.h"

#include <charconv>
#include <string_view>

namespace kv::simt::cudart {
namespace {

struct CheckName {
  std::string_view name;
  uint32_t bits;
};

constexpr CheckName kCheckNames[] = {
    {"memory", KV_SIMT_CHECK_MEMORY}, {"undefined", KV_SIMT_CHECK_UNDEFINED},
    {"race", KV_SIMT_CHECK_RACE},     {"barrier", KV_SIMT_CHECK_BARRIER},
    {"async", KV_SIMT_CHECK_ASYNC},   {"leak", KV_SIMT_CHECK_LEAK},
    {"all", KV_SIMT_CHECK_ALL},       {"none", 0},
};

Error bad_value(const char* variable, std::string_view got, const char* expected) {
  return bad_input(std::string("environment variable ") + variable + ": expected " + expected +
                   ", got \"" + std::string(got) + "\"");
}

Result<uint64_t> read_integer(const char* variable, std::string_view text, const char* expected) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return bad_value(variable, text, expected);
  }
  return value;
}

Result<uint32_t> read_checks(std::string_view text) {
  const std::string_view whole = text;
  uint32_t bits = 0;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    bool known = false;
    for (const CheckName& check : kCheckNames) {
      if (check.name != name) continue;
      bits |= check.bits;
      known = true;
    }
    if (!known) {
      return bad_value("KV_SIMT_CHECKS", whole,
                       "all, none, or a comma-separated list of memory, undefined, race, barrier, "
                       "async, leak");
    }
    if (comma == std::string_view::npos) return bits;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

Result<Environment> read_environment(const std::function<const char*(const char*)>& variable,
                                     const kv_simt_config& defaults) {
  Environment environment{.config = defaults, .report = {}};
  kv_simt_config& config = environment.config;
  if (const char* text = variable("KV_SIMT_MODEL")) {
    constexpr const char* kExpected = "80, 89 or 90";
    KV_ASSIGN_OR_RETURN(const uint64_t sm, read_integer("KV_SIMT_MODEL", text, kExpected));
    if (sm != 80 && sm != 89 && sm != 90) return bad_value("KV_SIMT_MODEL", text, kExpected);
    config.model_sm = static_cast<uint32_t>(sm);
  }
  if (const char* text = variable("KV_SIMT_SEED")) {
    KV_ASSIGN_OR_RETURN(config.schedule_seed,
                        read_integer("KV_SIMT_SEED", text, "an unsigned 64-bit integer"));
  }
  if (const char* text = variable("KV_SIMT_CHECKS")) {
    KV_ASSIGN_OR_RETURN(config.checks, read_checks(text));
  }
  if (const char* text = variable("KV_SIMT_REPORT")) environment.report = text;
  return environment;
}

}  // namespace kv::simt::cudart
