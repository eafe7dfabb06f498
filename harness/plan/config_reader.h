// Purpose: members of a config.json by name, each wrong one as one sentence.
// Contract: `name` names the file in messages. Nothing is guessed: what is there and is not what
// was expected is an error; null is as if it were not there. Example:  KV_ASSIGN_OR_RETURN(const
// uint64_t n, reader.count({"n_layer", "num_layers"}, 256));
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case/json_tree.h"
#include "harness/core/result.h"

namespace kv {

class ConfigReader {
 public:
  using Names = std::initializer_list<const char*>;
  ConfigReader(const Json& config, std::string_view name) : config_(config), name_(name) {}

  Error error(const char* key, const std::string& expected, const std::string& got) const;
  /// The value of `key`, which is there, as what was got.
  Error error(const char* key, const std::string& expected) const;

  /// The first of the names that the config has and that is not null.
  std::optional<const char*> present(Names keys) const;
  const Json& at(const char* key) const { return config_[key]; }
  /// Printable ASCII; `otherwise` when it is not there or no string.
  std::string word(const char* key, const char* otherwise) const;

  /// Nothing when none of the names is there.
  Result<std::optional<uint64_t>> optional_count(Names keys, uint64_t max) const;
  Result<uint64_t> count(Names keys, uint64_t max) const;
  Result<std::optional<bool>> optional_flag(const char* key) const;
  /// Whole numbers from 0 to `max`.
  Result<std::vector<uint64_t>> numbers(const char* key, uint64_t max) const;
  /// A part of the config that is an object; nothing when it is not there.
  Result<std::optional<ConfigReader>> part(const char* key) const;

 private:
  const Json& config_;
  std::string_view name_;
};

}  // namespace kv
