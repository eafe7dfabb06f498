#include "harness/case/side_car.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "harness/case/problem.h"
#include "harness/case/safetensors.h"
#include "harness/case/text_file.h"
#include "harness/case/utf8.h"

namespace kv {
namespace {

namespace fs = std::filesystem;

Error wrong(std::string_view name, std::string_view where, std::string_view expected,
            std::string_view got) {
  return bad_input(fmt::format("{}: {}: expected {}, got {}", name, where, expected, got));
}

/// An ascending list of integers from 0.
Result<std::vector<uint64_t>> ascending(const TensorFile& file, const char* which,
                                        std::string_view name) {
  const StoredTensor* tensor = file.find(which);
  if (tensor == nullptr) return wrong(name, which, "a tensor of this name", "none");
  if (tensor->type != "I64" || tensor->shape.size() != 1 || tensor->elements() == 0) {
    return wrong(name, which, "I64 of one dimension", tensor->type + " " + tensor->shape_text());
  }
  std::vector<uint64_t> list;
  for (uint64_t i = 0; i < tensor->elements(); ++i) {
    const int64_t value = integer_at(file, *tensor, i);
    if (value < 0 || (i > 0 && static_cast<uint64_t>(value) < list.back())) {
      return wrong(name, fmt::format("{}[{}]", which, i), "ascending numbers from 0",
                   std::to_string(value));
    }
    list.push_back(static_cast<uint64_t>(value));
  }
  return list;
}

constexpr std::string_view kRoles[] = {"query", "key", "value", "key_scale", "value_scale"};
constexpr size_t kScales = 3;  // of kRoles from here on

struct LayerRole {
  uint32_t layer = 0;
  size_t role = 0;
};
/// "layer12.key"
std::optional<LayerRole> layer_role(std::string_view text) {
  constexpr std::string_view kLayer = "layer";
  const size_t dot = text.find('.');
  if (!text.starts_with(kLayer) || dot == text.npos) return std::nullopt;
  LayerRole place;
  const char* const end = text.data() + dot;
  const auto [stop, status] = std::from_chars(text.data() + kLayer.size(), end, place.layer);
  const auto role = std::find(std::begin(kRoles), std::end(kRoles), text.substr(dot + 1));
  if (status != std::errc() || stop != end || role == std::end(kRoles)) return std::nullopt;
  if (place.layer >= limits::kLayersMax) return std::nullopt;
  place.role = static_cast<size_t>(role - std::begin(kRoles));
  return place;
}

/// Index of the first element that is no finite number.
std::optional<uint64_t> first_not_finite(std::span<const std::byte> bytes, DType type) {
  const uint32_t exponent = type == DType::kF16    ? 0x7C00
                            : type == DType::kBf16 ? 0x7F80
                                                   : 0x7F800000;
  const uint32_t size = dtype_bytes(type);
  for (uint64_t i = 0; i < bytes.size() / size; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * size, size);
    if ((bits & exponent) == exponent) return i;
  }
  return std::nullopt;
}

}  // namespace

Result<SideCar> SideCar::parse(TensorFile file, std::string_view name) {
  SideCar car;
  car.file_ = std::move(file);
  KV_RETURN_IF_ERROR(car.read_requests(name));
  KV_RETURN_IF_ERROR(car.read_layers(name));
  return car;
}

Result<void> SideCar::read_requests(std::string_view name) {
  KV_ASSIGN_OR_RETURN(request_, ascending(file_, "request", name));
  KV_ASSIGN_OR_RETURN(kv_begin_, ascending(file_, "kv_begin", name));
  KV_ASSIGN_OR_RETURN(query_begin_, ascending(file_, "query_begin", name));
  if (std::adjacent_find(request_.begin(), request_.end()) != request_.end()) {
    return wrong(name, "request", "each id once", "one twice");
  }
  for (const auto* list : {&kv_begin_, &query_begin_}) {
    if (list->size() == request_.size() + 1 && list->front() == 0) continue;
    return wrong(name, list == &kv_begin_ ? "kv_begin" : "query_begin",
                 fmt::format("{} numbers, the first of them 0", request_.size() + 1),
                 fmt::format("{}, the first {}", list->size(), list->front()));
  }
  for (size_t i = 0; i < request_.size(); ++i) {
    const uint64_t slots = kv_begin_[i + 1] - kv_begin_[i];
    const uint64_t queries = query_begin_[i + 1] - query_begin_[i];
    if (queries <= slots) continue;
    return wrong(name, fmt::format("query_begin[{}]", i + 1),
                 fmt::format("at most {} query rows, one for each slot", slots),
                 std::to_string(queries));
  }
  return {};
}

Result<void> SideCar::read_layers(std::string_view name) {
  for (const StoredTensor& tensor : file_.tensors) {
    const bool list =
        tensor.name == "request" || tensor.name == "kv_begin" || tensor.name == "query_begin";
    if (!list) KV_RETURN_IF_ERROR(read_layer(tensor, name));
  }
  return {};
}

Result<void> SideCar::read_layer(const StoredTensor& tensor, std::string_view name) {
  const std::string where = in_quotes(tensor.name);
  const auto place = layer_role(tensor.name);
  if (!place) {
    return wrong(name, where,
                 "request, kv_begin, query_begin or layerL.query, .key, .value, .key_scale or "
                 ".value_scale",
                 "another name");
  }
  if (layers_.size() <= place->layer) layers_.resize(place->layer + 1);
  if (place->role >= kScales) {
    layers_[place->layer].scale[place->role - kScales] = &tensor;
    return read_scale(tensor, name);
  }
  const auto type = float_type(tensor);
  const uint64_t rows = place->role == 0 ? query_begin_.back() : kv_begin_.back();
  if (!type || tensor.shape.size() != 3 || tensor.shape[0] != rows) {
    return wrong(name, where, fmt::format("F16, BF16 or F32 [{}, heads, dimensions]", rows),
                 tensor.type + " " + tensor.shape_text());
  }
  if (const auto index = first_not_finite(file_.bytes_of(tensor), *type)) {
    return wrong(name, fmt::format("{}[{}]", where, *index), "finite numbers", "another");
  }
  layers_[place->layer].role[place->role] = &tensor;
  return {};
}

Result<void> SideCar::read_scale(const StoredTensor& tensor, std::string_view name) const {
  const std::string where = in_quotes(tensor.name);
  if (tensor.type != "F32" || tensor.shape.size() != 1 || tensor.elements() == 0)
    return wrong(name, where, "F32 of one dimension", tensor.type + " " + tensor.shape_text());
  std::vector<double> scales(tensor.elements());
  decode_row(DType::kF32, file_.bytes_of(tensor).data(), scales.size(), scales.data());
  for (const double scale : scales) {
    if (!std::isfinite(scale) || scale == 0)
      return wrong(name, where, "finite scales other than 0", fmt::format("{}", scale));
  }
  return {};
}

std::optional<float> SideCar::scale(uint32_t layer, bool value, uint32_t head) const {
  const StoredTensor* tensor = layer < layers_.size() ? layers_[layer].scale[value] : nullptr;
  if (tensor == nullptr) return std::nullopt;
  const uint64_t index = tensor->elements() == 1 ? 0 : head;
  if (index >= tensor->elements()) return std::nullopt;
  double scale = 0;
  decode_row(DType::kF32, file_.bytes_of(*tensor).data() + index * sizeof(float), 1, &scale);
  return static_cast<float>(scale);
}

uint32_t SideCar::fill(const Shape& shape, const RowAddress& where,
                       std::span<std::byte> out) const {
  if (where.layer >= layers_.size()) return 0;
  const StoredTensor* tensor = layers_[where.layer].role[static_cast<size_t>(where.role)];
  const auto found = std::lower_bound(request_.begin(), request_.end(), where.request.value);
  if (tensor == nullptr || found == request_.end() || *found != where.request.value) return 0;
  const auto i = static_cast<size_t>(found - request_.begin());
  const uint64_t slots = kv_begin_[i + 1] - kv_begin_[i];
  uint64_t row = kv_begin_[i] + where.slot;
  bool held = where.slot < slots;
  if (where.role == TensorRole::kQuery) {
    const auto first = static_cast<int64_t>(slots - (query_begin_[i + 1] - query_begin_[i]));
    held = where.query_slot >= first && where.query_slot < static_cast<int64_t>(slots);
    row = query_begin_[i] + static_cast<uint64_t>(where.query_slot - first);
  }
  const uint64_t heads = tensor->shape[1], dims = tensor->shape[2];
  if (!held || where.head >= heads) return 0;
  const DType from = *float_type(*tensor), to = tensor_dtype(shape, where.role);
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(dims, out.size() / dtype_bytes(to)));
  const std::byte* source =
      file_.bytes_of(*tensor).data() + (row * heads + where.head) * dims * dtype_bytes(from);
  if (from == to) {
    std::memcpy(out.data(), source, count * dtype_bytes(to));
    return count;
  }
  std::vector<double> values(count);
  decode_row(from, source, count, values.data());
  encode_row(to, values.data(), count, out.data());
  return count;
}

// ---------------------------------------------------------------- files of this process

namespace {

/// Cases are values that are copied, compared and sent to other processes as text, so what they
/// name lies here and not in them: read once, never changed, never removed.
class Files {
 public:
  Result<void> read(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (cars_.contains(path)) return {};
    KV_ASSIGN_OR_RETURN(std::string text, read_text_file(path, kTensorFileBytesMax));
    const uint64_t bytes = text.size();
    if (bytes > kBytesMax - bytes_) {
      return environment_error(
          fmt::format("{}: expected at most {} bytes of tensors in the cases of one run, got more: "
                      "run fewer at once",
                      path, kBytesMax));
    }
    KV_ASSIGN_OR_RETURN(TensorFile file, parse_safetensors(std::move(text), path));
    KV_ASSIGN_OR_RETURN(SideCar car, SideCar::parse(std::move(file), path));
    cars_.emplace(path, std::make_unique<const SideCar>(std::move(car)));
    bytes_ += bytes;
    return {};
  }
  const SideCar* find(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto found = cars_.find(path);
    return found == cars_.end() ? nullptr : found->second.get();
  }

 private:
  static constexpr uint64_t kBytesMax = 4 * kTensorFileBytesMax;

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<const SideCar>> cars_;
  uint64_t bytes_ = 0;
};

Files& files() {
  static Files files;
  return files;
}

}  // namespace

Result<void> attach_side_car(Case& c, const std::string& folder) {
  if (c.data.tensors_file.empty()) return {};
  if (c.engine) return unsupported("data.tensors_file: of an engine's own cache is not supported");
  std::error_code error;
  const fs::path path = fs::absolute(fs::path(folder) / c.data.tensors_file, error);
  const std::string text = path.lexically_normal().string();
  if (error || text.size() > limits::kPathBytesMax || !printable_utf8(text)) {
    return bad_input(fmt::format("data.tensors_file: expected a path of at most {} bytes, got {}",
                                 limits::kPathBytesMax, in_quotes(text)));
  }
  const Result<void> read = files().read(text);
  if (!read.ok()) return Error{read.error().kind, "data.tensors_file: " + read.error().message};
  c.data.tensors_file = text;
  return {};
}

const SideCar* side_car_of(const Case& c) { return files().find(c.data.tensors_file); }

std::string relative_side_car(const Case& c, const std::string& folder) {
  if (c.data.tensors_file.empty()) return "";
  std::error_code error;
  const fs::path from = fs::absolute(folder.empty() ? "." : folder, error).lexically_normal();
  const fs::path relative = fs::path(c.data.tensors_file).lexically_relative(from);
  return error || relative.empty() ? c.data.tensors_file : relative.string();
}

}  // namespace kv
