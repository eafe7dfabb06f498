#include "harness/plan/config_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace kv {
namespace {

constexpr size_t kWordBytesMax = 64;

}  // namespace

Error ConfigReader::error(const char* key, const std::string& expected,
                          const std::string& got) const {
  return bad_input(fmt::format("{}: {}: expected {}, got {}", name_, key, expected, got));
}
Error ConfigReader::error(const char* key, const std::string& expected) const {
  return error(key, expected, preview(config_[key]));
}

std::optional<const char*> ConfigReader::present(Names keys) const {
  for (const char* key : keys) {
    if (config_.contains(key) && !config_[key].is_null()) return key;
  }
  return std::nullopt;
}

std::string ConfigReader::word(const char* key, const char* otherwise) const {
  if (!present({key}) || !config_[key].is_string()) return otherwise;
  std::string text = config_[key].get<std::string>().substr(0, kWordBytesMax);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7E; }, '?');
  return text;
}

Result<std::optional<uint64_t>> ConfigReader::optional_count(Names keys, uint64_t max) const {
  const auto key = present(keys);
  if (!key) return std::optional<uint64_t>();
  const Json& value = config_[*key];
  const bool whole = value.is_number_unsigned();
  if (!whole || value.get<uint64_t>() < 1 || value.get<uint64_t>() > max) {
    return error(*key, fmt::format("an integer from 1 to {}", max));
  }
  return std::optional<uint64_t>(value.get<uint64_t>());
}

Result<uint64_t> ConfigReader::count(Names keys, uint64_t max) const {
  KV_ASSIGN_OR_RETURN(const auto value, optional_count(keys, max));
  if (!value) return error(*keys.begin(), fmt::format("an integer from 1 to {}", max), "nothing");
  return *value;
}

Result<std::optional<bool>> ConfigReader::optional_flag(const char* key) const {
  if (!present({key})) return std::optional<bool>();
  if (!config_[key].is_boolean()) return error(key, "true or false");
  return std::optional<bool>(config_[key].get<bool>());
}

Result<std::vector<uint64_t>> ConfigReader::numbers(const char* key, uint64_t max) const {
  std::vector<uint64_t> all;
  const Json& list = config_[key];
  bool sound = list.is_array();
  for (size_t i = 0; sound && i < list.size(); ++i) {
    sound = list[i].is_number_unsigned() && list[i].get<uint64_t>() <= max;
    if (sound) all.push_back(list[i].get<uint64_t>());
  }
  if (!sound) return error(key, fmt::format("a list of integers from 0 to {}", max));
  return all;
}

Result<std::optional<ConfigReader>> ConfigReader::part(const char* key) const {
  if (!present({key})) return std::optional<ConfigReader>();
  if (!config_[key].is_object()) return error(key, "an object");
  return std::optional<ConfigReader>(ConfigReader(config_[key], name_));
}

}  // namespace kv
