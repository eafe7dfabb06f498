#include "harness/case/validate.h"

#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include "harness/case/names.h"
#include "harness/case/problem.h"
#include "harness/case/schema.h"
#include "harness/case/utf8.h"

namespace kv {
namespace {

// Walks every field and holds it against its own rule.
class RangeChecker {
 public:
  explicit RangeChecker(Problem& problem) : problem_(problem) {}

  template <class T, class... Rules>
  void field(const char* name, const T& member, const Rules&... rules) {
    Problem::At at(problem_, name);
    check(member, rules...);
  }
  template <class T, class... Rules>
  void optional(const char* name, const T& member, const Rules&... rules) {
    field(name, member, rules...);
  }

 private:
  template <class T>
  void check(const T& group) {
    schema::fields(*this, group);
  }
  void check(const Op& op) {
    std::visit([this](const auto& o) { schema::fields(*this, o); }, op);
  }
  template <class T, class Bound>
  requires std::is_arithmetic_v<T>
  void check(T value, const schema::Range<Bound>& range) {
    const auto wide = static_cast<Bound>(value);
    if (wide >= range.low && wide <= range.high) return;  // false for NaN
    if constexpr (std::is_floating_point_v<T>) {
      problem_.report(describe(range), decimal(wide));
    } else {
      problem_.report(describe(range), std::to_string(value));
    }
  }
  void check(RequestId id, const schema::Range<uint64_t>& range) { check(id.value, range); }
  void check(bool, schema::Flag) {}
  template <class E>
  requires std::is_enum_v<E>
  void check(E value, schema::OneOf) {
    const auto names = name_table<E>();
    const auto index = static_cast<size_t>(value);
    if (index >= names.size()) problem_.report(describe_one_of(names), std::to_string(index));
  }
  void check(const std::string& text, const schema::Text& rule) {
    if (text.size() > rule.bytes_max || !printable_utf8(text)) {
      problem_.report(describe(rule), in_quotes(text));
    }
  }
  template <class T, class... Rules>
  void check(const std::optional<T>& maybe, const Rules&... rules) {
    if (maybe) check(*maybe, rules...);
  }
  template <class T, class... Rules>
  void check(const std::vector<T>& items, const schema::List& list, const Rules&... rules) {
    if (items.size() < list.items_min || items.size() > list.items_max) {
      problem_.report(describe(list), fmt::format("{} items", items.size()));
    }
    for (size_t i = 0; i < items.size() && !problem_.found(); ++i) {
      Problem::At at(problem_, i);
      check(items[i], rules...);
    }
  }

  Problem& problem_;
};

// ---------------------------------------------------------------- fields that bind each other

Error wrong(std::string_view where, std::string_view expected, std::string_view got) {
  return bad_input(fmt::format("{}: expected {}, got {}", where, expected, got));
}

Result<void> check_shape(const Shape& shape) {
  if (shape.query_heads % shape.kv_heads != 0) {
    return wrong("shape.query_heads", fmt::format("a multiple of kv_heads {}", shape.kv_heads),
                 std::to_string(shape.query_heads));
  }
  if (shape.value_in_key && shape.head_dim_v > shape.head_dim_k) {
    return wrong("shape.head_dim_v",
                 fmt::format("at most head_dim_k {}, as V lies in K", shape.head_dim_k),
                 std::to_string(shape.head_dim_v));
  }
  const Rope& rope = shape.rope;
  const bool rotates = rope.pairing != RopePairing::kNone;
  if (rope.dims % 2 != 0 || rope.dims > shape.head_dim_k || rotates != (rope.dims > 0)) {
    return wrong("shape.rope.dims",
                 fmt::format("an even number up to head_dim_k {}, zero exactly without a pairing",
                             shape.head_dim_k),
                 std::to_string(rope.dims));
  }
  return {};
}

Result<void> check_pool(const Case& c) {
  const uint32_t slots = c.pool.page_slots;
  if ((slots & (slots - 1)) != 0) {
    return wrong("pool.page_slots", "a power of two", std::to_string(slots));
  }
  const Shape& shape = c.shape;
  // Below 2^60 within the fields' own limits.
  const uint64_t bytes = uint64_t{c.pool.page_count} * slots * shape.kv_heads *
                         (shape.head_dim_k + shape.head_dim_v) * dtype_bytes(shape.kv_dtype) *
                         shape.layers;
  if (bytes > limits::kPoolBytesMax) {
    return wrong("pool",
                 fmt::format("at most {} bytes of K and V in all layers", limits::kPoolBytesMax),
                 fmt::format("{} bytes", bytes));
  }
  return {};
}

Result<void> check_mask(const Mask& mask) {
  if (dtype_bytes(mask.additive_dtype) == 1) {
    return wrong("mask.additive_dtype", "\"f32\", \"f16\" or \"bf16\"",
                 in_quotes(name_of(mask.additive_dtype)));
  }
  return {};
}

auto place_of(const Data::Override& o) {
  return std::tuple(o.tensor, o.request, o.slot, o.layer, o.head, o.dim);
}

// Sorted, so that the data function finds a row's overrides at once and none is given twice.
Result<void> check_overrides(const Case& c) {
  const auto& overrides = c.data.overrides;
  for (size_t i = 0; i < overrides.size(); ++i) {
    const Data::Override& o = overrides[i];
    const bool is_query = o.tensor == 0, is_value = o.tensor == 2;
    const uint32_t heads = is_query ? c.shape.query_heads : c.shape.kv_heads;
    const uint32_t dims = is_value ? c.shape.head_dim_v : c.shape.head_dim_k;
    if (is_value && c.shape.value_in_key) {
      return wrong(fmt::format("data.overrides[{}].tensor", i), "0 or 1, as V lies in K", "2");
    }
    if (o.layer >= c.shape.layers || o.head >= heads || o.dim >= dims) {
      return wrong(fmt::format("data.overrides[{}]", i),
                   fmt::format("layer < {}, head < {}, dim < {}", c.shape.layers, heads, dims),
                   fmt::format("layer {}, head {}, dim {}", o.layer, o.head, o.dim));
    }
    if (i > 0 && !(place_of(overrides[i - 1]) < place_of(o))) {
      return wrong(fmt::format("data.overrides[{}]", i),
                   "ascending order of tensor, request, slot, layer, head, dim",
                   "an element not after the one before it");
    }
  }
  return {};
}

Result<void> check_engine(const Case& c) {
  if (!c.engine || c.engine->groups.empty()) return {};
  uint64_t layers = 0;
  for (const CacheGroup& group : c.engine->groups) layers += group.layers;
  if (layers != c.shape.layers) {
    return wrong("engine.groups", fmt::format("{} layers in all, as the shape", c.shape.layers),
                 std::to_string(layers));
  }
  return {};
}

Result<void> check_op(const op::Admit& admit, const std::string& where) {
  const uint64_t most = admit.prefix_of ? admit.prompt_tokens : 0;
  if (admit.prefix_tokens > most) {
    return wrong(where + ".prefix_tokens",
                 fmt::format("at most {} ({})", most,
                             admit.prefix_of ? "prompt_tokens" : "there is no prefix_of"),
                 std::to_string(admit.prefix_tokens));
  }
  return {};
}

Result<void> check_op(const op::Step& step, const std::string& where) {
  for (size_t r = 0; r < step.rows.size(); ++r) {
    const op::StepRow& row = step.rows[r];
    if (row.speculative > row.append) {
      return wrong(fmt::format("{}.rows[{}].speculative", where, r),
                   fmt::format("at most the {} appended tokens", row.append),
                   std::to_string(row.speculative));
    }
    const std::vector<int32_t>& parents = row.tree_parents;
    const std::string path = fmt::format("{}.rows[{}].tree_parents", where, r);
    if (!parents.empty() && parents.size() != step.rows[r].append) {
      return wrong(path, fmt::format("one parent for each of {} tokens", step.rows[r].append),
                   fmt::format("{} items", parents.size()));
    }
    for (size_t i = 0; i < parents.size(); ++i) {
      if (parents[i] >= static_cast<int64_t>(i)) {
        return wrong(fmt::format("{}[{}]", path, i), "the index of an earlier token, or -1",
                     std::to_string(parents[i]));
      }
    }
  }
  return {};
}

Result<void> check_op(const op::Reorder& reorder, const std::string& where) {
  if (reorder.beams.size() != reorder.sources.size()) {
    return wrong(where + ".sources", fmt::format("one for each of {} beams", reorder.beams.size()),
                 fmt::format("{} items", reorder.sources.size()));
  }
  return {};
}

Result<void> check_op(const op::Shift& shift, const std::string& where) {
  if (shift.begin > shift.end) {
    return wrong(where + ".end", fmt::format("at least begin {}", shift.begin),
                 std::to_string(shift.end));
  }
  return {};
}

Result<void> check_op(const auto&, const std::string&) { return {}; }

}  // namespace

Result<void> check_case(const Case& c) {
  Problem problem;
  RangeChecker checker(problem);
  schema::fields(checker, c);
  if (problem.found()) return problem.error();
  KV_RETURN_IF_ERROR(check_shape(c.shape));
  KV_RETURN_IF_ERROR(check_mask(c.mask));
  KV_RETURN_IF_ERROR(check_pool(c));
  KV_RETURN_IF_ERROR(check_overrides(c));
  KV_RETURN_IF_ERROR(check_engine(c));
  for (size_t i = 0; i < c.ops.size(); ++i) {
    const std::string where = fmt::format("ops[{}]", i);
    KV_RETURN_IF_ERROR(std::visit([&](const auto& op) { return check_op(op, where); }, c.ops[i]));
  }
  return {};
}

Result<void> check_history(const Case& c) {
  const Case plain;
  const Pool &pool = c.pool, &own = plain.pool;
  const Exec &exec = c.exec, &as_it_is = plain.exec;
  const bool has_groups = c.engine && !c.engine->groups.empty();
  const std::pair<bool, const char*> means_nothing[] = {
      {pool.order != own.order, "pool.order"},
      {pool.layout != own.layout, "pool.layout"},
      {pool.poison != own.poison, "pool.poison"},
      {has_groups && c.mask.window_left != -1, "mask.window_left beside engine.groups"},
      {c.mask.encoding != MaskEncoding::kNone, "mask.encoding"},
      {c.data.digest.has_value(), "data.digest"},
      {!c.data.overrides.empty(), "data.overrides"},
      {!c.data.tensors_file.empty(), "data.tensors_file"},
      {!exec.variant.empty(), "exec.variant"},
      {exec.split_slots != 0, "exec.split_slots"},
      {exec.cascade_slots != 0, "exec.cascade_slots"},
      {exec.schedule_seed != 0, "exec.schedule_seed"},
      {exec.rounding != as_it_is.rounding, "exec.rounding"},
      {exec.rounding_seed != 0, "exec.rounding_seed"},
      {exec.repeat != 1, "exec.repeat"},
      {!exec.preceding.empty(), "exec.preceding"},
      {exec.graph, "exec.graph"}};
  for (const auto& [is_given, field] : means_nothing) {
    if (is_given) return wrong(field, "its default: no engine is told of it", "another value");
  }
  for (size_t i = 0; i < c.ops.size(); ++i) {
    const auto* step = std::get_if<op::Step>(&c.ops[i]);
    for (size_t r = 0; step != nullptr && r < step->rows.size(); ++r) {
      if (step->rows[r].pad_left == 0 && step->rows[r].pad_right == 0) continue;
      return wrong(fmt::format("ops[{}].rows[{}]", i, r), "no padding in an engine's cache",
                   fmt::format("pad_left {}, pad_right {}", step->rows[r].pad_left,
                               step->rows[r].pad_right));
    }
  }
  return {};
}

}  // namespace kv
