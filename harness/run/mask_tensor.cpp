#include "harness/run/mask_tensor.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "harness/case/mask_bits.h"
#include "harness/case/visibility.h"

namespace kv {
namespace {

constexpr uint32_t kWordBits = 32;

/// The bits of "visible" and "hidden" in one element.
struct ElementCodes {
  uint32_t visible = 0, hidden = 0;
};

ElementCodes codes_of(const Mask& mask) {
  switch (mask.encoding) {
    case MaskEncoding::kBoolKeep:
      return {.visible = 1, .hidden = 0};
    case MaskEncoding::kBoolBlock:
      return {.visible = 0, .hidden = 1};
    default: {
      const double hidden = mask.additive_finite_minimum ? -dtype_max(mask.additive_dtype)
                                                         : -std::numeric_limits<double>::infinity();
      return {.visible = 0, .hidden = encode(mask.additive_dtype, hidden)};
    }
  }
}

DLDataType type_of(const Mask& mask) {
  switch (mask.encoding) {
    case MaskEncoding::kPackedBits:
      return kDlUint32;
    case MaskEncoding::kAdditive:
      return dl_type(mask.additive_dtype);
    default:
      return kDlBool;
  }
}

/// Writes one element after the other.
class MaskWriter {
 public:
  MaskWriter(const Mask& mask, MaskTensor& tensor)
      : mask_(mask), codes_(codes_of(mask)), tensor_(tensor) {}

  void row(const std::vector<uint8_t>& visible) {
    if (mask_.encoding != MaskEncoding::kPackedBits) {
      for (const uint8_t v : visible)
        put(v ? codes_.visible : codes_.hidden, tensor_.type.bits / 8);
      return;
    }
    for (size_t first = 0; first < visible.size(); first += kWordBits) {
      uint32_t word = ~uint32_t{0};
      for (size_t bit = 0; bit < kWordBits && first + bit < visible.size(); ++bit) {
        if (!visible[first + bit]) word &= ~(uint32_t{1} << bit);
      }
      put(word, sizeof word);
    }
  }

 private:
  void put(uint32_t bits, size_t bytes) {
    const size_t at = tensor_.bytes.size();
    tensor_.bytes.resize(at + bytes);
    std::memcpy(&tensor_.bytes[at], &bits, bytes);
  }

  const Mask& mask_;
  const ElementCodes codes_;
  MaskTensor& tensor_;
};

}  // namespace

MaskTensor make_mask(const Case& c, const Timeline& timeline, const PlannedStep& step) {
  MaskTensor tensor;
  const Mask& mask = c.mask;
  if (mask.encoding == MaskEncoding::kNone) return tensor;
  uint32_t queries = 1, slots = 1;
  const PlannedRow* longest = &step.rows.front();
  for (const PlannedRow& row : step.rows) {
    queries = std::max(queries, row.queries);
    slots = std::max(slots, row.kv_length);
    if (row.kv_length > longest->kv_length) longest = &row;
  }
  tensor.type = type_of(mask);
  const size_t batches = mask.broadcast_batch ? 1 : step.rows.size();
  const uint32_t heads = mask.broadcast_head ? 1 : c.shape.query_heads;
  const uint32_t query_rows = mask.broadcast_query ? 1 : queries;
  const bool packed = mask.encoding == MaskEncoding::kPackedBits;
  const uint32_t columns = packed ? (slots + kWordBits - 1) / kWordBits : slots;
  tensor.shape = {static_cast<int64_t>(batches), heads, query_rows, columns};

  MaskWriter writer(mask, tensor);
  std::vector<uint8_t> visible;
  for (size_t b = 0; b < batches; ++b) {
    const PlannedRow& row = mask.broadcast_batch ? *longest : step.rows[b];
    const Sequence& sequence = timeline.sequence(row.request);
    const uint32_t live_queries = mask.broadcast_batch ? queries : row.queries;
    for (uint32_t head = 0; head < heads; ++head) {
      for (uint32_t q = 0; q < query_rows; ++q) {
        visible.assign(slots, 1);
        const bool live = q < std::max(live_queries, mask.broadcast_query ? 1u : 0u);
        const MaskRow shown(c, sequence, {q, head});
        for (uint32_t key = 0; live && key < row.kv_length; ++key) visible[key] = shown.shows(key);
        writer.row(visible);
      }
    }
  }
  return tensor;
}

TreeMask make_tree_mask(const Timeline& timeline, const PlannedStep& step) {
  TreeMask tree;
  uint32_t appended = 0;
  bool any = false;
  for (const PlannedRow& row : step.rows) {
    appended = std::max(appended, row.append_slots);
    any = any || !row.tree_parents.empty();
    tree.first_slots.push_back(static_cast<int32_t>(row.kv_length - row.append_slots));
  }
  if (!any) return tree;
  tree.columns = (appended + kWordBits - 1) / kWordBits;
  for (const PlannedRow& row : step.rows) {
    const Sequence& sequence = timeline.sequence(row.request);
    const int64_t first = int64_t{row.kv_length} - row.append_slots;
    for (uint32_t q = 0; q < row.queries; ++q) {
      const size_t at = tree.words.size();
      tree.words.resize(at + static_cast<size_t>(tree.columns), ~uint32_t{0});
      for (uint32_t i = 0; i < row.append_slots; ++i) {
        if (tree_shows(sequence, row, {query_slot(row, q), first + i})) continue;
        tree.words[at + i / kWordBits] &= ~(uint32_t{1} << i % kWordBits);
      }
    }
  }
  return tree;
}

bool has_trees(const Case& c) {
  return std::any_of(c.ops.begin(), c.ops.end(), [](const Op& op) {
    const auto* step = std::get_if<op::Step>(&op);
    return step != nullptr && std::any_of(step->rows.begin(), step->rows.end(),
                                          [](const auto& r) { return !r.tree_parents.empty(); });
  });
}

}  // namespace kv
