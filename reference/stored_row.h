// Purpose: what an append may store of one head of K or V where it rotates, converts or quantises.
// Contract: a pure function of the row that append received, its position and its scale. Each
// element has a set of admissible codes of its own (stored.h); they are decided by the code,
// without its scale. A row that is only moved has exactly one. Example:
//   StoredRows rows(c.shape);
//   rows.admissible({.source = key, .position = 17, .scale = 0.5f}, elements);
//   if (!rows.admits(elements, bytes)) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/case/case.h"
#include "reference/rope.h"
#include "reference/stored.h"

namespace kv::reference {

/// One element of a slot: what append received, what may stand there.
struct RowElement {
  double source = 0;  // before rotation
  double value = 0;   // after it, before the scale
  float scale = 1;
  StoredRange range;
};

/// One head of one token, as append received it.
struct SourceRow {
  std::span<const double> source;
  double source_error = 0;  // of each element, where it is not known exactly
  bool value = false;       // V, which is not rotated
  int64_t position = 0;
  float scale = 1;  // not looked at without scales
};

class StoredRows {
 public:
  explicit StoredRows(const Shape& shape);

  bool rotates() const { return shape_.rope.pairing != RopePairing::kNone; }
  /// Whether K, or V, is stored otherwise than it was given.
  bool changes(bool value) const;

  void admissible(const SourceRow& row, std::vector<RowElement>& out) const;
  bool admits(std::span<const RowElement> elements, std::span<const std::byte> got) const;
  /// Makes `expected` what `got` should have been: the same bytes where they are admissible, else
  /// the nearest code.
  void nearest(std::span<const RowElement> elements, std::span<const std::byte> got,
               std::span<std::byte> expected) const;
  /// "the source 1.5, turned to position 7: 0.25, divided by its scale 0.5; [0.5, 0.5] is
  /// admissible".
  std::string text(const RowElement& e, bool value, int64_t position) const;

  /// The row at a position, rounded to the query's dtype.
  RotatedRow rotated_query(int64_t position, std::span<const double> row) const;

 private:
  bool admits_code(const RowElement& e, uint32_t code) const;

  const Shape shape_;
  Rotator rotator_;
};

}  // namespace kv::reference
