// Purpose: one query row in any number type: O, LSE, their error bounds B0, and the error of the
// computation itself. The definition that the fast tier approximates and every violation is
// certified with.
// Contract: instantiated for double, DoubleDouble and Mpfr256/512/1024 (row.cpp). Only the columns
// asked for are computed. A vacuous row has infinite bounds.
// Source: docs/numerics.md §2.2 (O), §2.5 (LSE), §2.3 (exact cases), §4.5 (own error).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reference/bounds.h"
#include "reference/inputs.h"
#include "reference/profile.h"

namespace kv::reference {

/// A row's inputs, decoded, visible keys only.
struct RowInputs {
  HeadShape shape;
  uint64_t span = 0;                             // last visible slot - first visible slot + 1
  std::vector<uint64_t> slots;                   // [n], ascending
  std::vector<double> query;                     // [dim_k]
  std::vector<double> query_error;               // [dim_k] of a rotated query, or empty
  std::vector<double> keys, values;              // [n][dim_k], [n][dim_v], codes before their scale
  std::vector<double> key_scales, value_scales;  // [n], all 1 without scales
  bool scaled_kv = false;
  std::vector<double> bias;  // [n]
  std::optional<double> sink;
  size_t count() const { return key_scales.size(); }
};
RowInputs row_inputs(const HeadBlock& block, size_t row);

/// A part of a bound, for people; in the unit of the bound.
struct BudgetLine {
  std::string name;
  double value = 0;
};

/// Which bound an estimate carries, by what it assumes of the kernel.
enum class Basis : uint8_t {
  kBlackBox,     // B0: any order, tiling, splitting
  kOrder,        // B1: the order of tiles
  kProbability,  // B2: the order of tiles and how P is rounded
};

template <class T>
struct Estimate {
  T value = T(0), bound = T(0), own_error = T(0);
  Basis basis = Basis::kBlackBox;
  std::vector<BudgetLine> budget;  // when asked for
};

template <class T>
struct PreciseRow {
  bool vacuous = false;
  bool exact = false;  // every weight of a conforming kernel is exactly 1
  Estimate<T> lse;     // natural logarithm
  std::vector<Estimate<T>> columns;
};

struct RowQuestion {
  std::vector<uint32_t> columns = {};
  bool budget = false;
  /// The strongest assumptions that may be used; each column gets its tightest bound within them.
  Basis basis = Basis::kBlackBox;
};

/// `inputs` must hold at least one key and only finite numbers.
template <class T>
PreciseRow<T> precise_row(const RowInputs& inputs, const Profile& profile,
                          const RowQuestion& question);

/// Whether estimates name the parts of their bounds.
enum class Budget : uint8_t { kNone, kLines };

/// One row in one number type, column by column: what the columns share is computed once.
template <class T>
class RowTier {
 public:
  /// Both must outlive the object; inputs as for precise_row.
  RowTier(const RowInputs& inputs, const Profile& profile, Budget budget);
  ~RowTier();
  bool vacuous() const;
  bool exact() const;
  Estimate<T> lse() const;
  Estimate<T> column(uint32_t j, Basis basis);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kv::reference
