// Purpose: reading fields of JSON that others wrote, and writing JSON, without exceptions.
// Contract: a field that is absent or of another type is the fallback; text that is no UTF-8 (a
// path, a foreign message) is written with replacement characters.
// Example:  const uint64_t launches = number_field(report, "launches");
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace kv {

template <class Json>
uint64_t number_field(const Json& json, const char* name, uint64_t fallback = 0) {
  if (!json.is_object()) return fallback;
  const auto field = json.find(name);
  return field != json.end() && field->is_number_unsigned() ? field->template get<uint64_t>()
                                                            : fallback;
}

template <class Json>
std::string text_field(const Json& json, const char* name, const std::string& fallback = "") {
  if (!json.is_object()) return fallback;
  const auto field = json.find(name);
  return field != json.end() && field->is_string() ? field->template get<std::string>() : fallback;
}

/// `indent` -1: one line.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kv
