#include "harness/dump/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include "harness/case/limits.h"
#include "harness/case/problem.h"

namespace kv {
namespace {

using Names = std::span<const std::string_view>;
constexpr std::string_view kQuery[] = {"q", "query"};
constexpr std::string_view kKey[] = {"k", "key", "key_cache", "k_cache"};
constexpr std::string_view kValue[] = {"v", "value", "value_cache", "v_cache"};
constexpr std::string_view kKeyScale[] = {"k_scale", "key_scale", "k_scales", "key_scales"};
constexpr std::string_view kValueScale[] = {"v_scale", "value_scale", "v_scales", "value_scales"};
constexpr std::string_view kTable[] = {"block_table", "block_tables", "page_table"};
constexpr std::string_view kKvLengths[] = {"kv_lengths", "seq_lens", "context_lens",
                                           "cache_seqlens"};
constexpr std::string_view kQueryLengths[] = {"q_lengths", "query_lens"};
constexpr std::string_view kQuerySums[] = {"cu_q", "cu_seqlens_q", "qo_indptr", "query_start_loc"};

class Finder {
 public:
  Finder(const TensorFile& file, const LayoutOptions& options, std::string_view name)
      : file_(file), options_(options), name_(name) {}

  Result<DumpLayout> run() {
    KV_RETURN_IF_ERROR(check_prefix());
    KV_ASSIGN_OR_RETURN(out_.query, there(kQuery));
    if (!float_type(*out_.query))
      return wrong(out_.query->name, "F16, BF16 or F32", out_.query->type);
    KV_ASSIGN_OR_RETURN(const StoredTensor* key, there(kKey));
    KV_ASSIGN_OR_RETURN(const StoredTensor* value, there(kValue));
    KV_ASSIGN_OR_RETURN(out_.key, cache(key));
    KV_ASSIGN_OR_RETURN(out_.value, cache(value));
    const DumpCache &k = out_.key, &v = out_.value;
    if (k.pages != v.pages || k.page_slots != v.page_slots || k.heads != v.heads ||
        key->type != value->type) {
      return wrong(value->name, key->type + " " + key->shape_text() + " but for the last dimension",
                   value->type + " " + value->shape_text());
    }
    KV_RETURN_IF_ERROR(find_scales(kKeyScale, out_.key));
    KV_RETURN_IF_ERROR(find_scales(kValueScale, out_.value));
    if (out_.key.scales.empty() != out_.value.scales.empty()) {
      return wrong(out_.key.scales.empty() ? "k_scale" : "v_scale", "scales of K and of V", "one");
    }
    KV_RETURN_IF_ERROR(find_pages());
    KV_RETURN_IF_ERROR(find_kv_lengths());
    KV_RETURN_IF_ERROR(find_queries());
    return std::move(out_);
  }

 private:
  Error wrong(std::string_view where, std::string_view expected, std::string_view got) const {
    return bad_input(
        fmt::format("{}: {}: expected {}, got {}", name_, in_quotes(where), expected, got));
  }

  /// A prefix that is on no tensor is a slip of the pen: without it another layer would be taken.
  Result<void> check_prefix() const {
    const auto& tensors = file_.tensors;
    const bool is_there = std::any_of(tensors.begin(), tensors.end(), [&](const StoredTensor& t) {
      return t.name.starts_with(options_.prefix);
    });
    if (is_there) return {};
    return bad_input(fmt::format("{}: expected a tensor whose name begins with {}, got none", name_,
                                 in_quotes(options_.prefix)));
  }

  /// The one tensor with one of these names; nullptr when there is none.
  Result<const StoredTensor*> find(Names names) {
    for (const std::string& prefix : {options_.prefix, std::string()}) {
      const StoredTensor* found = nullptr;
      for (const std::string_view name : names) {
        const StoredTensor* tensor = file_.find(prefix + std::string(name));
        if (tensor == nullptr) continue;
        if (found != nullptr) {
          return wrong(tensor->name, "one name for it", in_quotes(found->name) + " as well");
        }
        found = tensor;
      }
      if (found == nullptr) continue;
      out_.used.insert(found->name);
      return found;
    }
    return static_cast<const StoredTensor*>(nullptr);
  }

  Result<const StoredTensor*> there(Names names) {
    KV_ASSIGN_OR_RETURN(const StoredTensor* tensor, find(names));
    if (tensor == nullptr) {
      return wrong(options_.prefix + std::string(names.front()),
                   fmt::format("a tensor named {}", fmt::join(names, ", ")), "none");
    }
    if (tensor->elements() > 0) return tensor;
    return wrong(tensor->name, "elements", tensor->type + " " + tensor->shape_text());
  }

  /// What K and V are made of: numbers, or codes of 8 bits.
  Result<DType> cache_type(const StoredTensor& tensor) const {
    std::optional<DType> type = float_type(tensor);
    if (tensor.type == "F8_E4M3") type = DType::kE4m3;
    if (tensor.type == "F8_E5M2") type = DType::kE5m2;
    if (tensor.type == "I8") type = DType::kI8;
    const std::optional<DType> said = options_.kv_dtype;
    if (tensor.type == "U8") {
      if (said == DType::kE4m3 || said == DType::kE5m2) return *said;
      return wrong(tensor.name, "kv_dtype e4m3 or e5m2 beside bytes without a type",
                   said ? std::string(dtype_name(*said)) : "none");
    }
    if (!type) return wrong(tensor.name, "F16, BF16, F32, F8_E4M3, F8_E5M2, I8 or U8", tensor.type);
    if (!said || said == type) return *type;
    return wrong(tensor.name, fmt::format("kv_dtype {}", dtype_name(*type)), dtype_name(*said));
  }

  /// One number, or one for each head.
  Result<void> find_scales(Names names, DumpCache& of) {
    KV_ASSIGN_OR_RETURN(const StoredTensor* tensor, find(names));
    if (tensor == nullptr) return {};
    const uint64_t count = tensor->elements();
    const auto type = float_type(*tensor);
    if ((!type && tensor->type != "F64") || (count != 1 && count != of.heads) ||
        tensor->shape.size() > 1) {
      return wrong(tensor->name, fmt::format("one number, or [{}] of them", of.heads),
                   tensor->type + " " + tensor->shape_text());
    }
    std::vector<double> numbers(count);
    const auto bytes = file_.bytes_of(*tensor);
    if (type) {
      decode_row(*type, bytes.data(), count, numbers.data());
    } else {
      std::memcpy(numbers.data(), bytes.data(), bytes.size());
    }
    for (const double number : numbers) {
      const auto scale = static_cast<float>(number);
      if (!std::isfinite(scale) || scale == 0)
        return wrong(tensor->name, "finite scales other than 0", fmt::format("{}", number));
      of.scales.push_back(scale);
    }
    return check_scaled(*tensor, of);
  }

  /// Engines write scales of 1 beside numbers that are none of codes.
  Result<void> check_scaled(const StoredTensor& tensor, DumpCache& of) const {
    if (dtype_bytes(of.type) == 1) return {};
    if (std::any_of(of.scales.begin(), of.scales.end(), [](float s) { return s != 1; })) {
      return wrong(tensor.name, fmt::format("1 beside K and V of {}", of.tensor->type),
                   fmt::format("{}", of.scales[0]));
    }
    of.scales.clear();
    return {};
  }

  /// A list of `size` integers, 0: of any number; nullopt when the dump has none.
  Result<std::optional<std::vector<int64_t>>> list(Names names, uint64_t size) {
    KV_ASSIGN_OR_RETURN(const StoredTensor* tensor, find(names));
    if (tensor == nullptr) return std::optional<std::vector<int64_t>>();
    if (!is_integer(*tensor) || tensor->shape.size() != 1 || tensor->elements() == 0 ||
        (size != 0 && tensor->elements() != size)) {
      return wrong(tensor->name,
                   size == 0 ? "I32 or I64 of one dimension" : fmt::format("I32 or I64 [{}]", size),
                   tensor->type + " " + tensor->shape_text());
    }
    std::vector<int64_t> values;
    for (uint64_t i = 0; i < tensor->elements(); ++i) {
      values.push_back(integer_at(file_, *tensor, i));
    }
    return std::optional(std::move(values));
  }

  Result<DumpCache> cache(const StoredTensor* tensor) const {
    const auto& shape = tensor->shape;
    if (shape.size() != 4) {
      return wrong(tensor->name, "4 dimensions", tensor->shape_text());
    }
    const bool heads_first = options_.cache == CacheLayout::kHeadSlot;
    DumpCache c{.tensor = tensor, .heads_first = heads_first};
    KV_ASSIGN_OR_RETURN(c.type, cache_type(*tensor));
    c.pages = shape[0];
    c.page_slots = shape[heads_first ? 2 : 1];
    c.heads = shape[heads_first ? 1 : 2];
    c.dims = shape[3];
    return c;
  }

  Result<void> count_requests(uint64_t count) {
    if (count > limits::kStepRowsMax) {
      return wrong(out_.key.tensor->name, fmt::format("at most {} requests", limits::kStepRowsMax),
                   std::to_string(count));
    }
    out_.requests.resize(count);
    return {};
  }

  Result<void> find_pages() {
    KV_ASSIGN_OR_RETURN(table_, find(kTable));
    out_.paged = table_ != nullptr;
    if (!out_.paged) {
      KV_RETURN_IF_ERROR(count_requests(out_.key.pages));
      for (uint64_t i = 0; i < out_.requests.size(); ++i) out_.requests[i].pages = {i};
      return {};
    }
    if (!is_integer(*table_) || table_->shape.size() != 2 || table_->elements() == 0) {
      return wrong(table_->name, "I32 or I64 of two dimensions",
                   table_->type + " " + table_->shape_text());
    }
    return count_requests(table_->shape[0]);
  }

  Result<void> find_kv_lengths() {
    KV_ASSIGN_OR_RETURN(const auto lengths, list(kKvLengths, out_.requests.size()));
    if (out_.paged && !lengths) {
      return wrong("kv_lengths", "a length for each request of the block table", "none");
    }
    const uint64_t pages = out_.paged ? table_->shape[1] : 1;
    const uint64_t most = pages * out_.key.page_slots;
    for (size_t i = 0; i < out_.requests.size(); ++i) {
      const int64_t length = lengths ? (*lengths)[i] : static_cast<int64_t>(most);
      if (length < 1 || static_cast<uint64_t>(length) > most) {
        return wrong(fmt::format("kv_lengths[{}]", i), fmt::format("1 to {} slots", most),
                     std::to_string(length));
      }
      out_.requests[i].kv_length = static_cast<uint64_t>(length);
      if (out_.paged) KV_RETURN_IF_ERROR(read_table_row(i));
    }
    return {};
  }

  /// Entries behind a request's length are nobody's: engines leave anything there.
  Result<void> read_table_row(size_t i) {
    DumpRequest& request = out_.requests[i];
    const uint64_t page_slots = out_.key.page_slots;
    for (uint64_t p = 0; p * page_slots < request.kv_length; ++p) {
      const int64_t page = integer_at(file_, *table_, i * table_->shape[1] + p);
      if (page < 0 || static_cast<uint64_t>(page) >= out_.key.pages) {
        return wrong(fmt::format("{}[{}, {}]", table_->name, i, p),
                     fmt::format("a page below {}", out_.key.pages), std::to_string(page));
      }
      request.pages.push_back(static_cast<uint64_t>(page));
    }
    return {};
  }

  Result<void> find_queries() {
    const StoredTensor& q = *out_.query;
    const uint64_t count = out_.requests.size();
    const bool ragged = q.shape.size() == 3;
    if ((!ragged && q.shape.size() != 4) || (!ragged && q.shape[0] != count)) {
      return wrong(q.name, fmt::format("[{}, rows, heads, dim] or [tokens, heads, dim]", count),
                   q.shape_text());
    }
    if (q.shape.back() != out_.key.dims) {
      return wrong(q.name, fmt::format("rows of {} elements, as K", out_.key.dims), q.shape_text());
    }
    out_.query_heads = q.shape[q.shape.size() - 2];
    KV_ASSIGN_OR_RETURN(const auto lengths, query_lengths(ragged));
    uint64_t token = 0;
    for (uint64_t i = 0; i < count; ++i) {
      DumpRequest& request = out_.requests[i];
      const uint64_t most = ragged ? q.shape[0] - token : q.shape[1];
      const int64_t length = lengths[i];
      if (length < 0 || static_cast<uint64_t>(length) > std::min(most, request.kv_length)) {
        return wrong(fmt::format("q_lengths[{}]", i),
                     fmt::format("0 to {} rows", std::min(most, request.kv_length)),
                     std::to_string(length));
      }
      request.queries = static_cast<uint64_t>(length);
      request.first_query = ragged ? token : i * q.shape[1];
      token += request.queries;
    }
    if (!ragged || token == q.shape[0]) return {};
    return wrong("q_lengths", fmt::format("the {} tokens of {}", q.shape[0], q.name),
                 fmt::format("{} in all", token));
  }

  Result<std::vector<int64_t>> query_lengths(bool ragged) {
    const uint64_t count = out_.requests.size();
    KV_ASSIGN_OR_RETURN(auto lengths, list(kQueryLengths, count));
    KV_ASSIGN_OR_RETURN(const auto sums, list(kQuerySums, count + 1));
    if (lengths && sums) return wrong("q_lengths", "lengths or their sums", "both");
    if (lengths) return *std::move(lengths);
    const uint64_t all = out_.query->shape[ragged ? 0 : 1];
    if (!sums && ragged && all != count) {
      return wrong("q_lengths", fmt::format("how many of the {} tokens each request has", all),
                   "none");
    }
    std::vector<int64_t> each(count, ragged ? 1 : static_cast<int64_t>(all));
    if (!sums) return each;
    for (uint64_t i = 0; i <= count; ++i) {
      const int64_t low = i == 0 ? 0 : (*sums)[i - 1];
      const int64_t high = i == 0 ? 0 : static_cast<int64_t>(limits::kQueriesMax);
      if ((*sums)[i] < low || (*sums)[i] > high) {
        return wrong(fmt::format("cu_q[{}]", i), fmt::format("{} to {}", low, high),
                     std::to_string((*sums)[i]));
      }
      if (i > 0) each[i - 1] = (*sums)[i] - low;
    }
    return each;
  }

  const TensorFile& file_;
  const LayoutOptions& options_;
  const std::string_view name_;
  const StoredTensor* table_ = nullptr;
  DumpLayout out_;
};

}  // namespace

Result<DumpLayout> find_layout(const TensorFile& file, const LayoutOptions& options,
                               std::string_view name) {
  return Finder(file, options, name).run();
}

}  // namespace kv
