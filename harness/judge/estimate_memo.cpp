#include "harness/judge/estimate_memo.h"

#include <algorithm>
#include <cstring>

#include "harness/case/data.h"

namespace kv {
namespace {

using reference::HeadBlock;
using reference::HeadEstimate;
using reference::QueryRow;
using reference::RowEstimate;

/// Appends to bytes for which there is room.
class Appender {
 public:
  explicit Appender(std::span<std::byte> room) : room_(room) {}
  size_t left() const { return room_.size(); }
  template <class T, size_t kSize>
  void span(std::span<T, kSize> items) {
    if (items.empty()) return;
    std::memcpy(room_.data(), items.data(), items.size_bytes());
    room_ = room_.subspan(items.size_bytes());
  }
  template <class T>
  void value(const T& value) {
    span(std::span<const T, 1>(&value, 1));
  }
  void row(const std::byte* row, size_t bytes) {
    value(row != nullptr);
    if (row != nullptr) span(std::span(row, bytes));
  }

 private:
  std::span<std::byte> room_;
};

void add_query(const QueryRow& row, size_t query_bytes, Appender& out) {
  out.value(row.anchor);
  out.value(row.alibi_slope);
  out.value(row.sink.has_value());
  out.value(row.sink.value_or(0));
  out.span(row.visible);
  out.value(row.rotated.size());
  out.span(row.rotated);
  out.span(row.rotated_error);
  out.row(row.rotated.empty() ? row.query : nullptr, query_bytes);
}

/// At least as many bytes as add_inputs() writes.
size_t room_for(const HeadBlock& block) {
  const reference::HeadShape& s = block.shape;
  const size_t key = size_t{s.dim_k} * dtype_bytes(s.kv_dtype);
  const size_t value = size_t{s.dim_v} * dtype_bytes(s.kv_dtype);
  size_t bytes = 64 + block.keys.size() * (key + value + 2) + block.key_scales.size_bytes() +
                 block.value_scales.size_bytes();
  for (const QueryRow& row : block.rows)
    bytes += 64 + row.visible.size() + row.rotated.size_bytes() + row.rotated_error.size_bytes() +
             size_t{s.dim_k} * dtype_bytes(s.query_dtype);
  return bytes;
}

/// Every number that the estimate depends on, beside the setting.
void add_inputs(const HeadBlock& block, std::vector<std::byte>& inputs) {
  const reference::HeadShape& s = block.shape;
  inputs.resize(room_for(block));
  Appender out(inputs);
  out.value(block.rows.size());
  out.value(block.keys.size());
  for (const QueryRow& row : block.rows)
    add_query(row, size_t{s.dim_k} * dtype_bytes(s.query_dtype), out);
  out.span(block.key_scales);
  out.span(block.value_scales);
  const size_t key = size_t{s.dim_k} * dtype_bytes(s.kv_dtype);
  const size_t value = size_t{s.dim_v} * dtype_bytes(s.kv_dtype);
  for (const std::byte* row : block.keys) out.row(row, key);
  for (const std::byte* row : block.values) out.row(row, value);
  inputs.resize(inputs.size() - out.left());
}

/// The arrays of a row, in the order in which a note holds them.
template <class Row, class Visit>
void each_array(Row& row, Visit visit) {
  for (auto* array : {&row.output, &row.bound_low, &row.own_error, &row.rounded.output,
                      &row.rounded.bound_low, &row.rounded.own_error})
    if (*array != nullptr) visit(*array);
}

}  // namespace

const EstimateMemo::Note* EstimateMemo::find(const Setting& setting) const {
  const auto found = std::ranges::find_if(notes_, [&](const Note& note) {
    return note.inputs.size() == inputs_.size() && note.rounded == setting.rounded &&
           std::memcmp(note.inputs.data(), inputs_.data(), inputs_.size()) == 0 &&
           note.declared == setting.declared && note.shape == setting.shape;
  });
  return found == notes_.end() ? nullptr : &*found;
}

const HeadEstimate& EstimateMemo::of(const Setting& setting, const HeadBlock& block,
                                     const Run& run) {
  if (notes_.empty() && !takes_notes_) return run();
  add_inputs(block, inputs_);
  if (const Note* known = find(setting)) {
    ++hits_;
    return known->estimate;
  }
  const HeadEstimate& estimate = run();
  if (takes_notes_ && bytes_ + 2 * inputs_.size() <= kBytesMax) note(setting, block, estimate);
  return estimate;
}

void EstimateMemo::note(const Setting& setting, const HeadBlock& block,
                        const HeadEstimate& estimate) {
  Note& note = notes_.emplace_back(
      Note{setting.shape, setting.declared, setting.rounded, std::move(inputs_), {}, estimate});
  const size_t dims = block.shape.dim_v;
  constexpr size_t kArraysMax = 6;
  note.numbers.reserve(note.estimate.rows.size() * kArraysMax * dims);  // so that none moves
  for (RowEstimate& row : note.estimate.rows) {
    each_array(row, [&](const double*& array) {
      const double* const from = array;
      array = note.numbers.data() + note.numbers.size();
      note.numbers.insert(note.numbers.end(), from, from + dims);
    });
  }
  bytes_ += sizeof note + note.inputs.size() + note.numbers.size() * sizeof(double);
}

}  // namespace kv
