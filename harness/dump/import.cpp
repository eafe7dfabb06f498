#include "harness/dump/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>

#include "harness/case/limits.h"
#include "harness/case/pages.h"
#include "harness/case/problem.h"
#include "harness/case/safetensors.h"
#include "harness/case/text_file.h"
#include "harness/case/timeline.h"
#include "harness/case/utf8.h"
#include "harness/dump/layout.h"
#include "harness/dump/npz.h"

namespace kv {
namespace {

constexpr uint64_t kPageSlots = 16;  // where the dump has no pages

/// Bits of what an append is given so that the cache holds each code; nothing for a code that is no
/// number, or that the append would not make of it again.
using CodeTable = std::array<std::optional<uint32_t>, 256>;

struct CodeTypes {
  DType codes, numbers;
};
CodeTable code_table(const CodeTypes& types, float scale) {
  CodeTable table;
  for (uint32_t code = 0; code < table.size(); ++code) {
    const uint32_t bits = encode(types.numbers, decode(types.codes, code) * scale);
    const double number = decode(types.numbers, bits);
    if (std::isfinite(number) && encode_saturating(types.codes, number / scale) == code)
      table[code] = bits;
  }
  return table;
}

class Importer {
 public:
  Importer(const TensorFile& file, const DumpOptions& options) : file_(file), options_(options) {}

  Result<Imported> run() {
    KV_ASSIGN_OR_RETURN(settings_, settings_of(file_, options_.settings, options_.name));
    assume_missing();
    if (settings_.layout == CacheLayout::kInterleaved)
      return bad_input("layout: expected slot_head or head_slot, got interleaved");
    KV_ASSIGN_OR_RETURN(layers_,
                        find_layers(file_, {options_.prefix, *settings_.layout, settings_.kv_dtype},
                                    options_.name));
    KV_RETURN_IF_ERROR(check_sizes());
    describe();
    KV_RETURN_IF_ERROR(set_pool());
    add_operations();
    const auto timeline = Timeline::create(out_.c);
    if (!timeline.ok())
      return bad_input(fmt::format("{}: as a case: {}", options_.name, timeline.error().message));
    KV_ASSIGN_OR_RETURN(out_.side_car, side_car());
    for (const StoredTensor& tensor : file_.tensors)
      if (!is_used(tensor.name)) out_.not_used.push_back(tensor.name);
    return std::move(out_);
  }

 private:
  /// The first layer: what a case says once is the same in all.
  const DumpLayout& layout() const { return layers_.front(); }
  bool is_used(const std::string& name) const {
    return is_setting(name) ||
           std::any_of(layers_.begin(), layers_.end(),
                       [&](const DumpLayout& layer) { return layer.used.contains(name); });
  }

  template <class T>
  void assume(std::optional<T>& setting, T value, std::string_view text) {
    if (setting) return;
    setting = value;
    out_.assumed.emplace_back(text);
  }
  void assume_missing() {
    assume(settings_.causal, Causal::kBottomRight, "causal bottom_right");
    assume(settings_.layout, CacheLayout::kSlotHead, "layout slot_head");
    assume<int64_t>(settings_.window_left, -1, "no window to the left");
    assume<int64_t>(settings_.window_right, -1, "no window to the right");
    assume(settings_.softcap, 0.0, "no softcap");
  }

  /// Before anything is narrowed to the fields of a case.
  Result<void> check_sizes() const {
    const uint64_t dims = std::max(layout().key.dims, layout().value.dims);
    const uint64_t heads = std::max(layout().query_heads, layout().key.heads);
    if (dims > limits::kHeadDimMax || heads > limits::kHeadsMax) {
      return bad_input(fmt::format("{}: expected at most {} heads of {} dimensions, got {} of {}",
                                   options_.name, limits::kHeadsMax, limits::kHeadDimMax, heads,
                                   dims));
    }
    uint64_t slots = 0;
    for (const DumpRequest& request : layout().requests) slots += request.kv_length;
    // Below 2^56 within the limits above. Requests that share pages multiply them.
    const uint64_t slot_bytes = layout().key.heads * (layout().key.dims + layout().value.dims) *
                                dtype_bytes(appended_type()) * layers_.size();
    const uint64_t most = std::min(limits::kSlotsMax, kTensorFileBytesMax / 2 / slot_bytes);
    if (slots <= most) return {};
    return bad_input(
        fmt::format("{}: expected at most {} slots in all, got {}", options_.name, most, slots));
  }

  void describe() {
    Case& c = out_.c;
    c.name = std::filesystem::path(options_.name).stem().string();
    if (c.name.size() > limits::kNameBytesMax || !printable_utf8(c.name)) c.name = "imported";
    c.comment = "a recorded attention call; its tensors lie in data.tensors_file";
    Shape& s = c.shape;
    s.layers = static_cast<uint32_t>(layers_.size());
    s.query_heads = static_cast<uint32_t>(layout().query_heads);
    s.kv_heads = static_cast<uint32_t>(layout().key.heads);
    s.head_dim_k = static_cast<uint32_t>(layout().key.dims);
    s.head_dim_v = static_cast<uint32_t>(layout().value.dims);
    s.query_dtype = s.output_dtype = *float_type(*layout().query);
    s.kv_dtype = layout().key.type;
    describe_scales();
    assume(settings_.scale, 1 / std::sqrt(static_cast<double>(s.head_dim_k)),
           "scale 1/sqrt(head dimension)");
    s.scale = static_cast<float>(*settings_.scale);
    s.softcap = static_cast<float>(*settings_.softcap);
    c.mask.causal = *settings_.causal;
    c.mask.window_left = *settings_.window_left;
    c.mask.window_right = *settings_.window_right;
    c.pool.layout = *settings_.layout;
  }

  bool has_codes() const { return dtype_bytes(layout().key.type) == 1; }
  /// Of K and V as an append is given them.
  DType appended_type() const {
    return has_codes() ? *float_type(*layout().query) : layout().key.type;
  }

  void describe_scales() {
    if (!has_codes()) return;
    const size_t most = std::max(layout().key.scales.size(), layout().value.scales.size());
    out_.c.shape.kv_scale = most == 0   ? KvScale::kNone
                            : most == 1 ? KvScale::kTensor
                                        : KvScale::kHead;
    if (most == 0) out_.assumed.emplace_back("no scales of K and V");
  }

  Result<void> set_pool() {
    const uint64_t own = layout().key.page_slots;
    if (layout().paged && !settings_.page_size) {
      if (own > limits::kPageSlotsMax || (own & (own - 1)) != 0) {
        return bad_input(
            fmt::format("{}: expected pages of a power of two up to {} slots, got {}: --page-size "
                        "gives the case "
                        "another one",
                        options_.name, limits::kPageSlotsMax, own));
      }
      settings_.page_size = own;
    }
    assume(settings_.page_size, kPageSlots, "pages of 16 slots");
    if (*settings_.page_size == 0 || *settings_.page_size > limits::kPageSlotsMax) {
      return bad_input(fmt::format("{}: page_size: expected 1 to {}, got {}", options_.name,
                                   limits::kPageSlotsMax, *settings_.page_size));
    }
    Pool& pool = out_.c.pool;
    pool.page_slots = static_cast<uint32_t>(*settings_.page_size);
    uint64_t pages = 0;
    for (const DumpRequest& request : layout().requests)
      pages += pages_for(request.kv_length, pool.page_slots);
    if (pages > limits::kPageCountMax) {
      return bad_input(fmt::format("{}: expected at most {} pages, got {}", options_.name,
                                   limits::kPageCountMax, pages));
    }
    pool.page_count = static_cast<uint32_t>(pages);
    return {};
  }

  /// Everything in one step, or the beginnings of the longest before it, with a query row each.
  void add_operations() {
    const Shape& s = out_.c.shape;
    const uint64_t row_bytes = uint64_t{4} * (s.head_dim_k + s.head_dim_v) * s.kv_heads;
    const uint64_t step_slots = limits::kStepBytesMax / 2 / row_bytes;
    const uint64_t chunk =
        std::clamp<uint64_t>(step_slots / layout().requests.size(), 1, limits::kRowTokensMax);
    std::vector<uint64_t> held(layout().requests.size());
    op::Step last;
    for (size_t i = 0; i < held.size(); ++i) {
      const DumpRequest& request = layout().requests[i];
      out_.c.ops.emplace_back(
          op::Admit{.request = RequestId(i), .prompt_tokens = request.kv_length});
      while (request.kv_length - held[i] > chunk) {
        out_.c.ops.emplace_back(op::Step{
            .rows = {
                {.request = RequestId(i), .append = static_cast<uint32_t>(chunk), .queries = 1}}});
        held[i] += chunk;
      }
      last.rows.push_back({.request = RequestId(i),
                           .append = static_cast<uint32_t>(request.kv_length - held[i]),
                           .queries = static_cast<uint32_t>(request.queries)});
    }
    out_.c.ops.emplace_back(std::move(last));
    std::set<uint64_t> seen;
    for (const DumpRequest& request : layout().requests)
      for (const uint64_t page : request.pages) out_.shared_pages += !seen.insert(page).second;
  }

  // ---------------------------------------------------------------- side-car

  void append(TensorFile& to, const std::string& name, const std::string& type,
              std::vector<uint64_t> shape, uint64_t begin) const {
    to.tensors.push_back({name, type, std::move(shape), begin, to.data.size() - begin});
  }

  /// Rows of one layer's K or V, one after another: slots of each request, heads of each slot.
  template <class Visit>
  void each_row(const DumpLayout& layer, const DumpCache& cache, Visit visit) const {
    const uint64_t bytes = dtype_bytes(cache.type);
    const auto all = file_.bytes_of(*cache.tensor);
    for (const DumpRequest& request : layer.requests) {
      for (uint64_t slot = 0; slot < request.kv_length; ++slot) {
        const uint64_t page = request.pages[slot / cache.page_slots];
        for (uint64_t head = 0; head < cache.heads; ++head) {
          const uint64_t first = cache.at(page, slot % cache.page_slots, head) * bytes;
          visit(head, all.subspan(first, cache.dims * bytes));
        }
      }
    }
  }

  Result<void> append_cache(TensorFile& to, const std::string& name, const DumpLayout& layer,
                            const DumpCache& cache) const {
    const uint64_t begin = to.data.size();
    if (dtype_bytes(cache.type) == 1) {
      KV_RETURN_IF_ERROR(append_codes(to, layer, cache));
    } else {
      each_row(layer, cache, [&](uint64_t, std::span<const std::byte> row) {
        to.data.append(reinterpret_cast<const char*>(row.data()), row.size());
      });
    }
    const uint64_t row_bytes = cache.heads * cache.dims * dtype_bytes(appended_type());
    append(to, name, has_codes() ? layout().query->type : cache.tensor->type,
           {(to.data.size() - begin) / row_bytes, cache.heads, cache.dims}, begin);
    return {};
  }

  Result<void> append_codes(TensorFile& to, const DumpLayout& layer, const DumpCache& cache) const {
    std::vector<CodeTable> tables;
    const std::vector<float> scales = cache.scales.empty() ? std::vector<float>{1} : cache.scales;
    for (const float scale : scales)
      tables.push_back(code_table({.codes = cache.type, .numbers = appended_type()}, scale));
    const uint32_t bytes = dtype_bytes(appended_type());
    std::optional<std::pair<uint64_t, uint32_t>> lost;  // head, code
    each_row(layer, cache, [&](uint64_t head, std::span<const std::byte> row) {
      const CodeTable& table = tables[scales.size() == 1 ? 0 : head];
      for (const std::byte byte : row) {
        const auto code = std::to_integer<uint32_t>(byte);
        if (!table[code] && !lost) lost = {head, code};
        const uint32_t bits = table[code].value_or(0);
        to.data.append(reinterpret_cast<const char*>(&bits), bytes);
      }
    });
    if (!lost) return {};
    return bad_input(fmt::format(
        "{}: {}: expected codes that {} gives again, times their scale {}, got {:#04x} of head {}",
        options_.name, in_quotes(cache.tensor->name), dtype_name(appended_type()),
        scales[scales.size() == 1 ? 0 : lost->first], lost->second, lost->first));
  }

  void append_scales(TensorFile& to, const std::string& name, const DumpCache& cache) const {
    if (cache.scales.empty()) return;
    const uint64_t begin = to.data.size();
    const auto bytes = std::as_bytes(std::span(cache.scales));
    to.data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    append(to, name, "F32", {cache.scales.size()}, begin);
  }

  void append_list(TensorFile& to, const char* name, const std::vector<uint64_t>& list) const {
    const uint64_t begin = to.data.size();
    const auto bytes = std::as_bytes(std::span(list));
    to.data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    append(to, name, "I64", {list.size()}, begin);
  }

  void append_lists(TensorFile& to) const {
    std::vector<uint64_t> ids, kv_begin = {0}, query_begin = {0};
    for (const DumpRequest& request : layout().requests) {
      ids.push_back(ids.size());
      kv_begin.push_back(kv_begin.back() + request.kv_length);
      query_begin.push_back(query_begin.back() + request.queries);
    }
    append_list(to, "request", ids);
    append_list(to, "kv_begin", kv_begin);
    append_list(to, "query_begin", query_begin);
  }

  void append_queries(TensorFile& to, const std::string& name, const DumpLayout& layer) const {
    const uint64_t row = layer.query_heads * layer.key.dims, begin = to.data.size();
    const uint64_t size = dtype_bytes(out_.c.shape.query_dtype);
    uint64_t rows = 0;
    for (const DumpRequest& request : layer.requests) {
      to.data.append(file_.data, layer.query->first + request.first_query * row * size,
                     request.queries * row * size);
      rows += request.queries;
    }
    append(to, name, layer.query->type, {rows, layer.query_heads, layer.key.dims}, begin);
  }

  Result<std::string> side_car() const {
    TensorFile to;
    append_lists(to);
    for (size_t i = 0; i < layers_.size(); ++i) {
      const DumpLayout& layer = layers_[i];
      const std::string name = fmt::format("layer{}.", i);
      KV_RETURN_IF_ERROR(append_cache(to, name + "key", layer, layer.key));
      KV_RETURN_IF_ERROR(append_cache(to, name + "value", layer, layer.value));
      append_scales(to, name + "key_scale", layer.key);
      append_scales(to, name + "value_scale", layer.value);
      append_queries(to, name + "query", layer);
    }
    return safetensors_text(to);
  }

  const TensorFile& file_;
  const DumpOptions& options_;
  DumpSettings settings_;
  std::vector<DumpLayout> layers_;
  Imported out_;
};

}  // namespace

Result<TensorFile> read_dump(const std::string& path) {
  KV_ASSIGN_OR_RETURN(std::string text, read_text_file(path, kTensorFileBytesMax));
  if (text.starts_with("PK")) return parse_npz(text, path);
  return parse_safetensors(std::move(text), path);
}

Result<Imported> import_dump(const TensorFile& file, const DumpOptions& options) {
  return Importer(file, options).run();
}

}  // namespace kv
