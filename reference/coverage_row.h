// Purpose: one row as certified coverage sees it: its columns with their bounds, and what the bound
// of a slightly other row may be.
// Contract: private to coverage.cpp. All in double, outward by kSlack and by the row's own errors.
#pragma once

#include <vector>

#include "reference/precise/black_box.h"

namespace kv::reference {

struct AdmissibleInterval {
  double low = 0, high = 0;
};
inline bool disjoint(const AdmissibleInterval& a, const AdmissibleInterval& b) {
  return a.high < b.low || b.high < a.low;
}

struct CoverageColumn {
  double output = 0, magnitude = 0, own_error = 0;
  double accumulated = 0;  // what steps of P.V err by: magnitude, P's rounding, value_floor
  double spread = 0, rounding = 0, accumulation = 0, underflow = 0;  // divided by L
  bool exact_with_more = false;  // P.V stays exact when one more key is added
  AdmissibleInterval admissible;
};

/// A faulty row, by how its sums differ. All upper bounds.
struct FaultyRow {
  double q = 1;          // L / L'
  double theta = 0;      // sum p' Theta
  double theta_max = 0;  // largest Theta
  double extra = 0;      // part of Theta that the right row's keys gained
  double row_sum = 0;    // error of the normaliser
  double rounding = 0;   // sum of r / L'
};

/// One column of it.
struct FaultyColumn {
  double shift = 0;                                   // O' - O
  double spread = 0, rounding = 0, accumulation = 0;  // terms that join, divided by L
};

class CoverageRow {
 public:
  CoverageRow(const RowInputs& in, const Profile& profile, DType output_dtype);

  const RowFacts<double> facts;
  std::vector<CoverageColumn> columns;
  double lse_radius = 0;

  AdmissibleInterval admissible(double centre, double radius) const;
  bool column_is_apart(const CoverageColumn& c, const FaultyRow& row,
                       const FaultyColumn& column) const;
  /// `second`: a magnitude that the faulty row's maximum may have.
  bool lse_is_apart(const FaultyRow& row, double distance, double second) const;
  AdmissibleInterval lse_interval() const;

 private:
  std::vector<ColumnSums<double>> all_columns() const;
  CoverageColumn make_column(uint32_t j, const ColumnSums<double>& sums) const;
  const DType type_;
};

}  // namespace kv::reference
