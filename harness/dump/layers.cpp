// Several layers of one dump: the numbers that stand where a prefix has {}.
#include <fmt/format.h>

#include <charconv>
#include <set>

#include "harness/case/limits.h"
#include "harness/case/problem.h"
#include "harness/dump/layout.h"

namespace kv {
namespace {

constexpr std::string_view kPlace = "{}";

/// The number of `name` where `options.prefix` has {}; nothing when it begins otherwise.
std::optional<uint32_t> number_in(std::string_view name, std::string_view before,
                                  std::string_view after) {
  if (!name.starts_with(before)) return std::nullopt;
  name.remove_prefix(before.size());
  uint32_t number = 0;
  const auto [stop, status] = std::from_chars(name.data(), name.data() + name.size(), number);
  const size_t digits = static_cast<size_t>(stop - name.data());
  // One way of writing it: "03" beside "3" would be two layers of one number.
  const bool plain = status == std::errc() && (digits == 1 || name[0] != '0');
  if (!plain || !name.substr(digits).starts_with(after)) return std::nullopt;
  return number;
}

std::string text_of(const DumpLayout& d) {
  return fmt::format("{} of {} heads, K {} and V {} of {} heads, {} and {} dimensions",
                     d.query->type, d.query_heads, d.key.tensor->type, d.value.tensor->type,
                     d.key.heads, d.key.dims, d.value.dims);
}

bool is_like(const DumpLayout& a, const DumpLayout& b) {
  if (text_of(a) != text_of(b) || a.requests.size() != b.requests.size()) return false;
  if (a.key.page_slots != b.key.page_slots || a.paged != b.paged) return false;
  if (a.key.scales.size() != b.key.scales.size() || a.value.scales.size() != b.value.scales.size())
    return false;
  for (size_t i = 0; i < a.requests.size(); ++i)
    if (!a.requests[i].is_like(b.requests[i])) return false;
  return true;
}

/// Of two layers that share a tensor one was not recorded.
bool shares_tensor(const DumpLayout& a, const DumpLayout& b) {
  return a.query == b.query || a.key.tensor == b.key.tensor || a.value.tensor == b.value.tensor;
}

}  // namespace

Result<std::vector<DumpLayout>> find_layers(const TensorFile& file, const LayoutOptions& options,
                                            std::string_view name) {
  std::vector<DumpLayout> layers;
  const size_t place = options.prefix.find(kPlace);
  if (place == options.prefix.npos) {
    KV_ASSIGN_OR_RETURN(DumpLayout one, find_layout(file, options, name));
    layers.push_back(std::move(one));
    return layers;
  }
  const std::string before = options.prefix.substr(0, place);
  const std::string after = options.prefix.substr(place + kPlace.size());
  std::set<uint32_t> numbers;
  for (const StoredTensor& tensor : file.tensors)
    if (const auto number = number_in(tensor.name, before, after)) numbers.insert(*number);
  if (numbers.empty() || numbers.size() > limits::kLayersMax) {
    return bad_input(
        fmt::format("{}: expected tensors of 1 to {} layers whose names begin with {}, "
                    "got {}",
                    name, limits::kLayersMax, in_quotes(options.prefix), numbers.size()));
  }
  for (const uint32_t number : numbers) {
    LayoutOptions of_layer = options;
    of_layer.prefix = before + std::to_string(number) + after;
    KV_ASSIGN_OR_RETURN(DumpLayout next, find_layout(file, of_layer, name));
    if (!layers.empty() && (!is_like(layers[0], next) || shares_tensor(layers.back(), next))) {
      return bad_input(
          fmt::format("{}: {}: expected a q, k and v of its own, lengths and scales as the first "
                      "layer, and {}, "
                      "got {}",
                      name, in_quotes(of_layer.prefix), text_of(layers[0]), text_of(next)));
    }
    layers.push_back(std::move(next));
  }
  return layers;
}

}  // namespace kv
