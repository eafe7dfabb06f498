#include "harness/case/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "harness/case/json_tree.h"
#include "harness/case/problem.h"

namespace kv {
namespace {

constexpr uint64_t kHeaderBytesMax = 1u << 20;  // 4,096 tensors with names of 100 bytes
constexpr std::string_view kMetadata = "__metadata__";

class Reader {
 public:
  Reader(std::string text, std::string_view name) : text_(std::move(text)), name_(name) {}

  Result<TensorFile> run() {
    KV_ASSIGN_OR_RETURN(const Json header, read_header());
    for (const auto& [name, value] : header.items()) {
      if (!value.is_object()) return wrong(name, "an object", preview(value));
      if (name == kMetadata) {
        KV_RETURN_IF_ERROR(add_metadata(value));
      } else {
        KV_RETURN_IF_ERROR(add_tensor(name, value));
      }
    }
    KV_RETURN_IF_ERROR(check_cover());
    file_.data = std::move(text_);
    return std::move(file_);
  }

 private:
  Error wrong(std::string_view where, std::string_view expected, std::string_view got) const {
    return bad_input(
        fmt::format("{}: {}: expected {}, got {}", name_, in_quotes(where), expected, got));
  }

  Result<Json> read_header() {
    uint64_t length = 0;
    if (text_.size() < sizeof length) {
      return wrong("header", "a length of 8 bytes", fmt::format("{} bytes", text_.size()));
    }
    std::memcpy(&length, text_.data(), sizeof length);
    const uint64_t most = std::min(kHeaderBytesMax, text_.size() - sizeof length);
    if (length > most) {
      return wrong("header", fmt::format("at most {} bytes", most), fmt::format("{}", length));
    }
    data_ = sizeof length + length;
    const auto tree =
        parse_json(std::string_view(text_).substr(sizeof length, length), kTensorsMax);
    if (!tree.ok()) return bad_input(fmt::format("{}: header: {}", name_, tree.error().message));
    if (!tree->is_object()) return wrong("header", "an object", preview(*tree));
    return *tree;
  }

  Result<void> add_metadata(const Json& value) {
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) return wrong(key, "a string", preview(text));
      file_.metadata[key] = text.get<std::string>();
    }
    return {};
  }

  /// An unsigned list, of `size` items or, for 0, of at most kTensorRankMax.
  Result<std::vector<uint64_t>> numbers(const Json& tensor, const char* key, std::string_view where,
                                        size_t size) const {
    const auto found = tensor.find(key);
    const bool list = found != tensor.end() && found->is_array() &&
                      (size == 0 ? found->size() <= kTensorRankMax : found->size() == size);
    const auto expected = [&] {
      return size == 0 ? fmt::format("{} of at most {} unsigned integers", key, kTensorRankMax)
                       : fmt::format("{} of {} unsigned integers", key, size);
    };
    if (!list) return wrong(where, expected(), found == tensor.end() ? "none" : preview(*found));
    std::vector<uint64_t> all;
    for (const Json& number : *found) {
      if (!number.is_number_unsigned()) return wrong(where, expected(), preview(number));
      all.push_back(number.get<uint64_t>());
    }
    return all;
  }

  Result<void> add_tensor(const std::string& name, const Json& value) {
    const auto type = value.find("dtype");
    const bool known =
        type != value.end() && type->is_string() && stored_type_bytes(type->get<std::string>()) > 0;
    if (!known) {
      return wrong(name, "a dtype of safetensors", type == value.end() ? "none" : preview(*type));
    }
    StoredTensor tensor{.name = name, .type = type->get<std::string>()};
    KV_ASSIGN_OR_RETURN(tensor.shape, numbers(value, "shape", name, 0));
    KV_ASSIGN_OR_RETURN(const auto offsets, numbers(value, "data_offsets", name, 2));
    const uint64_t size = text_.size() - data_;
    if (offsets[0] > offsets[1] || offsets[1] > size) {
      return wrong(name, fmt::format("ascending data_offsets within {} bytes", size),
                   fmt::format("{} and {}", offsets[0], offsets[1]));
    }
    tensor.first = data_ + offsets[0];
    tensor.bytes = offsets[1] - offsets[0];
    const auto count = element_count(tensor.shape);
    if (!count || *count * stored_type_bytes(tensor.type) != tensor.bytes) {
      return wrong(name,
                   fmt::format("the bytes of {} of shape {}", tensor.type, tensor.shape_text()),
                   fmt::format("{} bytes", tensor.bytes));
    }
    file_.tensors.push_back(std::move(tensor));
    return {};
  }

  /// Every byte belongs to one tensor: what does not could not be told from damage.
  Result<void> check_cover() {
    std::vector<const StoredTensor*> order;
    for (const StoredTensor& tensor : file_.tensors) order.push_back(&tensor);
    std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
      return std::pair(a->first, a->bytes) < std::pair(b->first, b->bytes);
    });
    uint64_t end = data_;
    for (const StoredTensor* tensor : order) {
      if (tensor->first != end) {
        return wrong(tensor->name, fmt::format("to begin at data offset {}", end - data_),
                     fmt::format("{}", tensor->first - data_));
      }
      end += tensor->bytes;
    }
    if (end == text_.size()) return {};
    return wrong("data", fmt::format("{} bytes of tensors", end - data_),
                 fmt::format("{} bytes", text_.size() - data_));
  }

  std::string text_;
  const std::string_view name_;
  uint64_t data_ = 0;  // where the tensors begin
  TensorFile file_;
};

}  // namespace

Result<TensorFile> parse_safetensors(std::string text, std::string_view name) {
  return Reader(std::move(text), name).run();
}

std::string safetensors_text(const TensorFile& file) {
  Json header = Json::object();
  if (!file.metadata.empty()) header[std::string(kMetadata)] = file.metadata;
  const uint64_t begin = file.tensors.empty() ? 0 : file.tensors.front().first;
  uint64_t end = begin;
  for (const StoredTensor& tensor : file.tensors) {
    header[tensor.name] = {{"dtype", tensor.type},
                           {"shape", tensor.shape},
                           {"data_offsets", {tensor.first - begin, end - begin + tensor.bytes}}};
    end += tensor.bytes;
  }
  std::string json = header.dump();
  json.resize((json.size() + 7) / 8 * 8, ' ');  // the data is aligned
  const uint64_t length = json.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text + json + file.data.substr(begin, end - begin);
}

}  // namespace kv
