#include "harness/dump/import.h"

#include <fmt/format.h>

#include <algorithm>
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

class Importer {
 public:
  Importer(const TensorFile& file, const DumpOptions& options) : file_(file), options_(options) {}

  Result<Imported> run() {
    KV_ASSIGN_OR_RETURN(settings_, settings_of(file_, options_.settings, options_.name));
    assume_missing();
    if (settings_.layout == CacheLayout::kInterleaved)
      return bad_input("layout: expected slot_head or head_slot, got interleaved");
    KV_ASSIGN_OR_RETURN(layout_,
                        find_layout(file_, {options_.prefix, *settings_.layout}, options_.name));
    KV_RETURN_IF_ERROR(check_sizes());
    describe();
    KV_RETURN_IF_ERROR(set_pool());
    add_operations();
    const auto timeline = Timeline::create(out_.c);
    if (!timeline.ok())
      return bad_input(fmt::format("{}: as a case: {}", options_.name, timeline.error().message));
    out_.side_car = side_car();
    for (const StoredTensor& tensor : file_.tensors) {
      if (!layout_.used.contains(tensor.name) && !is_setting(tensor.name))
        out_.not_used.push_back(tensor.name);
    }
    return std::move(out_);
  }

 private:
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
    const uint64_t dims = std::max(layout_.key.dims, layout_.value.dims);
    const uint64_t heads = std::max(layout_.query_heads, layout_.key.heads);
    if (dims > limits::kHeadDimMax || heads > limits::kHeadsMax) {
      return bad_input(fmt::format("{}: expected at most {} heads of {} dimensions, got {} of {}",
                                   options_.name, limits::kHeadsMax, limits::kHeadDimMax, heads,
                                   dims));
    }
    uint64_t slots = 0;
    for (const DumpRequest& request : layout_.requests) slots += request.kv_length;
    // Below 2^48 within the limits above. Requests that share pages multiply them.
    const uint64_t slot_bytes = layout_.key.heads * (layout_.key.dims + layout_.value.dims) *
                                dtype_bytes(*float_type(*layout_.key.tensor));
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
    s.query_heads = static_cast<uint32_t>(layout_.query_heads);
    s.kv_heads = static_cast<uint32_t>(layout_.key.heads);
    s.head_dim_k = static_cast<uint32_t>(layout_.key.dims);
    s.head_dim_v = static_cast<uint32_t>(layout_.value.dims);
    s.query_dtype = s.output_dtype = *float_type(*layout_.query);
    s.kv_dtype = *float_type(*layout_.key.tensor);
    assume(settings_.scale, 1 / std::sqrt(static_cast<double>(s.head_dim_k)),
           "scale 1/sqrt(head dimension)");
    s.scale = static_cast<float>(*settings_.scale);
    s.softcap = static_cast<float>(*settings_.softcap);
    c.mask.causal = *settings_.causal;
    c.mask.window_left = *settings_.window_left;
    c.mask.window_right = *settings_.window_right;
    c.pool.layout = *settings_.layout;
  }

  Result<void> set_pool() {
    const uint64_t own = layout_.key.page_slots;
    if (layout_.paged && !settings_.page_size) {
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
    for (const DumpRequest& request : layout_.requests)
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
        std::clamp<uint64_t>(step_slots / layout_.requests.size(), 1, limits::kRowTokensMax);
    std::vector<uint64_t> held(layout_.requests.size());
    op::Step last;
    for (size_t i = 0; i < held.size(); ++i) {
      const DumpRequest& request = layout_.requests[i];
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
    for (const DumpRequest& request : layout_.requests)
      for (const uint64_t page : request.pages) out_.shared_pages += !seen.insert(page).second;
  }

  // ---------------------------------------------------------------- side-car

  template <class Visit>
  void each_kv_row(Visit visit) const {
    for (const DumpRequest& request : layout_.requests)
      for (uint64_t slot = 0; slot < request.kv_length; ++slot)
        visit(request.pages[slot / layout_.key.page_slots], slot % layout_.key.page_slots);
  }

  void append(TensorFile& to, const std::string& name, const std::string& type,
              std::vector<uint64_t> shape, uint64_t begin) const {
    to.tensors.push_back({name, type, std::move(shape), begin, to.data.size() - begin});
  }

  void append_cache(TensorFile& to, const char* name, const DumpCache& cache, uint64_t rows) const {
    const uint64_t size = dtype_bytes(*float_type(*cache.tensor)), begin = to.data.size();
    const auto bytes = file_.bytes_of(*cache.tensor);
    each_kv_row([&](uint64_t page, uint64_t slot) {
      for (uint64_t head = 0; head < cache.heads; ++head) {
        const auto row = bytes.subspan(cache.at(page, slot, head) * size, cache.dims * size);
        to.data.append(reinterpret_cast<const char*>(row.data()), row.size());
      }
    });
    append(to, name, cache.tensor->type, {rows, cache.heads, cache.dims}, begin);
  }

  void append_list(TensorFile& to, const char* name, const std::vector<uint64_t>& list) const {
    const uint64_t begin = to.data.size();
    const auto bytes = std::as_bytes(std::span(list));
    to.data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    append(to, name, "I64", {list.size()}, begin);
  }

  std::string side_car() const {
    TensorFile to;
    std::vector<uint64_t> ids, kv_begin = {0}, query_begin = {0};
    for (const DumpRequest& request : layout_.requests) {
      ids.push_back(ids.size());
      kv_begin.push_back(kv_begin.back() + request.kv_length);
      query_begin.push_back(query_begin.back() + request.queries);
    }
    append_list(to, "request", ids);
    append_list(to, "kv_begin", kv_begin);
    append_list(to, "query_begin", query_begin);
    append_cache(to, "layer0.key", layout_.key, kv_begin.back());
    append_cache(to, "layer0.value", layout_.value, kv_begin.back());
    const uint64_t row = layout_.query_heads * layout_.key.dims, begin = to.data.size();
    const uint64_t size = dtype_bytes(out_.c.shape.query_dtype);
    for (const DumpRequest& request : layout_.requests) {
      to.data.append(file_.data, layout_.query->first + request.first_query * row * size,
                     request.queries * row * size);
    }
    append(to, "layer0.query", layout_.query->type,
           {query_begin.back(), layout_.query_heads, layout_.key.dims}, begin);
    return safetensors_text(to);
  }

  const TensorFile& file_;
  const DumpOptions& options_;
  DumpSettings settings_;
  DumpLayout layout_;
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
