// Purpose: what becomes of K, V and Q on their way, where the plugin rotates or quantises them:
// what a slot may hold, the scales that make numbers of it, and the rotated query.
// Contract: a pure function of the case. The source of a slot is its token's row, in the dtype that
// append receives; K of a slot is turned to the slot's position. Each stored element has a set of
// admissible codes of its own (reference/stored_row.h); the values are then judged with the codes
// that were found, times their exact scales. Example:
//   Conversion conversion(c);
//   if (conversion.changes(place.value)) conversion.nearest(of, place, got, expected);
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/case/data.h"
#include "harness/case/kv_scales.h"
#include "harness/judge/pool_image.h"
#include "reference/stored_row.h"

namespace kv {

/// A token of a live request, as the slot's content is made of it.
struct SlotOf {
  const Sequence& sequence;
  uint64_t slot = 0;
  uint32_t kv_length = 0;
  std::optional<int64_t> turned_to = {};  // instead of the slot's own position
};

/// Where the data function draws a slot's row of one KV head.
RowAddress address_of(const SlotOf& of, const ScalePlace& place);
/// That row as append received it: [elements of one head].
std::vector<double> source_row(const Case& c, const SlotOf& of, const ScalePlace& place);

using StoredElement = reference::RowElement;

class Conversion {
 public:
  explicit Conversion(const Case& c);

  bool rotates() const { return rows_.rotates(); }
  /// Whether K, or V, is stored otherwise than it was given.
  bool changes(bool value) const { return rows_.changes(value); }

  /// One head of a slot: what each element may hold. Ignores place.page.
  void admissible(const SlotOf& of, const PagePlace& place, uint32_t head,
                  std::vector<StoredElement>& out) const;
  /// Makes `expected` what `got` should have been: the same bytes where they are admissible, else
  /// the nearest code, for all heads.
  void nearest(const SlotOf& of, const PagePlace& place, std::span<const std::byte> got,
               std::vector<std::byte>& expected) const;
  /// Whether these bytes may be the slot's content, all heads.
  bool admits(const SlotOf& of, const PagePlace& place, std::span<const std::byte> got) const;
  /// "the source 1.5, turned to position 7: 0.25, divided by its scale 0.5; [0.5, 0.5] is
  /// admissible".
  std::string text(const StoredElement& e, const SlotOf& of, const PagePlace& place) const;

  /// Scales of the first `count` slots of a KV head; empty without scales.
  std::vector<float> scales(const Sequence& sequence, uint64_t count,
                            const ScalePlace& place) const;

  /// The query row at a position, rounded to its dtype.
  reference::RotatedRow rotated_query(int64_t position, std::span<const double> row) const {
    return rows_.rotated_query(position, row);
  }

 private:
  const Case& c_;
  reference::StoredRows rows_;
};

}  // namespace kv
