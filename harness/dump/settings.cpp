#include "harness/dump/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "harness/case/names.h"
#include "harness/case/problem.h"

namespace kv {
namespace {

constexpr std::string_view kNames[] = {"scale",        "softcap",   "causal", "window_left",
                                       "window_right", "page_size", "layout", "kv_dtype"};

/// A tensor of one number as text, so that both ways of saying it are read alike.
std::optional<std::string> number_text(const TensorFile& file, const StoredTensor& tensor) {
  if (tensor.elements() != 1) return std::nullopt;
  if (is_integer(tensor)) return std::to_string(integer_at(file, tensor, 0));
  double value = 0;
  const auto bytes = file.bytes_of(tensor);
  if (tensor.type == "F64") {
    std::memcpy(&value, bytes.data(), sizeof value);
  } else if (const auto type = float_type(tensor)) {
    decode_row(*type, bytes.data(), 1, &value);
  } else {
    return std::nullopt;
  }
  return fmt::format("{}", value);
}

class Settings {
 public:
  Settings(const TensorFile& file, std::string_view name) : file_(file), name_(name) {}

  template <class T>
  Result<void> number(std::string_view key, std::optional<T>& value) {
    KV_ASSIGN_OR_RETURN(const auto text, text_of(key));
    if (!text || value) return {};
    T read{};
    const char* end = text->data() + text->size();
    const auto [stop, status] = std::from_chars(text->data(), end, read);
    bool good = status == std::errc() && stop == end;
    if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(read);
    if (!good) return wrong(key, "a number", in_quotes(*text));
    value = read;
    return {};
  }

  template <class E>
  Result<void> named(std::string_view key, std::optional<E>& value) {
    KV_ASSIGN_OR_RETURN(const auto text, text_of(key));
    if (!text || value) return {};
    const auto names = name_table<E>();
    const auto found = std::find(names.begin(), names.end(), *text);
    if (found == names.end()) return wrong(key, describe_one_of(names), in_quotes(*text));
    value = static_cast<E>(found - names.begin());
    return {};
  }

 private:
  Error wrong(std::string_view key, std::string_view expected, std::string_view got) const {
    return bad_input(fmt::format("{}: {}: expected {}, got {}", name_, key, expected, got));
  }

  Result<std::optional<std::string>> text_of(std::string_view key) const {
    const auto said = file_.metadata.find(std::string(key));
    const StoredTensor* tensor = file_.find(key);
    if (tensor == nullptr) {
      if (said == file_.metadata.end()) return std::optional<std::string>();
      return std::optional(said->second);
    }
    if (said != file_.metadata.end()) return wrong(key, "it once", "metadata and a tensor");
    auto text = number_text(file_, *tensor);
    if (text) return text;
    return wrong(key, "one number", tensor->type + " " + tensor->shape_text());
  }

  const TensorFile& file_;
  const std::string_view name_;
};

}  // namespace

Result<DumpSettings> settings_of(const TensorFile& file, const DumpSettings& given,
                                 std::string_view name) {
  DumpSettings s = given;
  Settings read(file, name);
  KV_RETURN_IF_ERROR(read.number("scale", s.scale));
  KV_RETURN_IF_ERROR(read.number("softcap", s.softcap));
  KV_RETURN_IF_ERROR(read.named("causal", s.causal));
  KV_RETURN_IF_ERROR(read.number("window_left", s.window_left));
  KV_RETURN_IF_ERROR(read.number("window_right", s.window_right));
  KV_RETURN_IF_ERROR(read.number("page_size", s.page_size));
  KV_RETURN_IF_ERROR(read.named("layout", s.layout));
  KV_RETURN_IF_ERROR(read.named("kv_dtype", s.kv_dtype));
  return s;
}

bool is_setting(std::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace kv
