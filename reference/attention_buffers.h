// Purpose: the buffers and steps of HeadEstimator, shared by attention.cpp (up to the sums),
// attention_finish.cpp (what the sums say of each row) and attention_rounded.cpp (B2).
// Contract: private to these three files.
#pragma once

#include <limits>
#include <vector>

#include "reference/attention.h"
#include "reference/bounds.h"

namespace kv::reference {

struct HeadEstimator::Buffers {
  const BlockOps& ops;
  HeadEstimate result;

  // Keys that at least one row sees, in ascending order of slot; everything below is compacted to
  // them and padded with hidden keys to a multiple of four.
  std::vector<uint32_t> slots;
  uint32_t keys = 0, key_stride = 0, value_stride = 0;
  std::vector<uint8_t> visible;         // [rows][keys]
  std::vector<uint64_t> span;           // [rows]
  std::vector<uint8_t> special;         // [keys]: K or V is not finite
  std::vector<double> key_norm;         // [keys]
  double key_max = 0, value_max = 0;    // scales included
  double scale_min = 1, scale_max = 1;  // of V
  std::vector<double> query, query_norm, weight, rounding, output, absolute, bound, error;
  std::vector<double> key_scale, value_scale, bias;
  std::vector<double> tile, square, largest;
  std::vector<const std::byte*> pointers;
  std::vector<WeightSums> sums;
  std::vector<Coefficients> coefficients_of;       // [rows] of those that see a key
  std::vector<double> own_relative, rounding_min;  // [rows] see finish_row

  // For B2, when it is asked for.
  bool rounds = false;
  struct RoundedRow {
    bool known = false;
    double denominator = 1, relative = 0;  // of RoundedWeights in precise/ordered.h
  };
  std::vector<RoundedRow> rounded_rows;
  std::vector<double> logits, score_size;                   // [rows][keys]
  std::vector<double> centre, radius;                       // [rows][keys], in the row's scale
  std::vector<double> maximums, local_error;                // [keys]
  std::vector<double> rounded, rounded_low, rounded_error;  // [rows][value_stride]

  explicit Buffers(const BlockOps& o) : ops(o) {}
  void gather(const HeadBlock& block);
  void decode_queries(const HeadBlock& block);
  void score(const HeadBlock& block);
  void weigh(const HeadBlock& block, const Profile& profile);
  void accumulate(const HeadBlock& block);
  void finish(const HeadBlock& block, const Profile& profile);
  void round(const HeadBlock& block, const Profile& profile);
  void finish_rounded(const HeadBlock& block, const Profile& profile);
  static bool may_round(const HeadBlock& block, const Profile& profile);

 private:
  struct Tile;
  Coefficients row_coefficients(const HeadBlock& block, const Profile& profile, size_t row) const;
  const double* decode_tile(std::span<const std::byte* const> source, const HeadBlock& block,
                            uint32_t dim, uint32_t stride, uint32_t first);
  void find_extent(const QueryRow& row, size_t index);
  const double* row_bias(const QueryRow& row);
  void mark_special(size_t row);
  bool may_be_unit(size_t row) const;
  bool may_be_dyadic(const HeadBlock& block, const Profile& profile, size_t row) const;
  /// Of |scale| |k_i|, of S_i, and of RowFacts::score_floor.
  struct ScoreSizes {
    double key = 0, largest = 0, floor = 0;
  };
  ScoreSizes score_sizes(const HeadBlock& block, const Coefficients& c, size_t row) const;
  static double rotation_norm(const QueryRow& row);
  bool operands_fit(const Coefficients& c) const;
  void finish_row(const HeadBlock& block, const Profile& profile, size_t row);
  double maximum_error(const Coefficients& c, const double* row_biases, size_t row) const;
  std::vector<Tile> find_tiles(const Profile& profile, size_t row);
  void find_scales(const Coefficients& c, const Profile& profile, double error,
                   std::vector<Tile>& tiles) const;
  void round_row(const HeadBlock& block, const Profile& profile, size_t row);
  void sum_tile(const Profile& profile, const Tile& tile, size_t row, double& error);
};

}  // namespace kv::reference
