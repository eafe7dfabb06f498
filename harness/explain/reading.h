// Purpose: what attention of one query row was computed from, as data that a hypothesis can change.
// Contract: Scene is a case up to one step, with the cache as it was observed; honest() is the
// reading that the contract asks for. contains() says whether an observed row lies in the
// admissible interval of a reading: every output and, unless the reading leaves it open, the LSE.
// A reading of undefined bytes contains a NaN and nothing else. A reading may also say that a row
// is no attention of anything: its RowFate.
// Example: Reading r = scene.honest(at); r.copies[5] = 1; if (scene.contains(at, r)) ...
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "harness/judge/failure.h"
#include "harness/judge/pool_image.h"
#include "reference/precise/row.h"
#include "reference/profile.h"
#include "reference/rope.h"

namespace kv {

/// One query row of the step, for one query head of one layer.
struct RowAt {
  uint32_t row = 0;  // of the step
  uint32_t query = 0, layer = 0, head = 0;
  bool operator==(const RowAt&) const = default;
};

/// Where K and V of a slot are read from.
struct SlotSource {
  uint32_t request_row = 0;  // whose block table
  uint64_t slot = 0;         // in that request, page edges included
  bool operator==(const SlotSource&) const = default;
};

/// Where the dequantisation scale of a slot is taken from.
enum class ScaleSource : uint8_t {
  kOwn,
  kNone,   // it is left out
  kTwice,  // it is applied twice
  kNextSlot,
  kPreviousSlot,
  kNextHead,
  kFirstOfPage,
  kOtherTensor
};

/// What a row is, where its state was lost on the way.
enum class RowFate : uint8_t {
  kNumbers,      // attention of what was read
  kNan,          // every output is NaN, whatever the LSE
  kNothingLeft,  // no weight is left: every output is 0, or every one NaN, whatever the LSE
  kAnything      // nothing is said of it
};

/// The LSE of a row that sees nothing.
enum class EmptyLse : uint8_t { kMinusInfinity, kZero, kPlusInfinity, kNan, kFiniteMinimum };

/// A key without memory: K and V are zeros.
struct ZeroKey {
  uint64_t slot = 0;
  double logit = 0;
  bool operator==(const ZeroKey&) const = default;
};

struct Reading {
  RowFate fate = RowFate::kNumbers;
  /// [slots to the end of the last page]: 0 hidden, 1 visible, 2 twice.
  std::vector<uint32_t> copies;
  std::vector<SlotSource> sources;        // of each
  std::vector<SlotSource> value_sources;  // of each one's V; empty: as K's
  RowAt query;                            // whose query
  uint32_t key_head = 0, value_head = 0, layer = 0;
  double scale = 1, softcap = 0;
  double alibi_slope = 0;
  int64_t alibi_anchor = 0;  // slot that distances are measured from
  std::optional<double> sink;
  bool keys_as_values = false, values_as_keys = false;
  std::vector<ZeroKey> zero_keys;           // seen beside `copies`
  uint32_t key_dims_dropped = 0;            // the last ones, of the scores
  uint32_t value_dims_dropped = 0;          // the last ones, whose outputs are 0
  std::optional<uint32_t> latent_value_at;  // dimension of K that V begins at, where V is in K
  std::vector<double> bias;                 // added to each slot's score beside ALiBi; empty: none
  double lse_factor = 1;                    // times the declared base
  double lse_shift = 0;                     // added to the natural logarithm
  bool lse_open = false;                    // the hypothesis says nothing of the LSE
  /// The LSE is that of another reading.
  std::shared_ptr<const Reading> lse_as;
  EmptyLse empty_lse = EmptyLse::kMinusInfinity;
  bool empty_is_mean = false;  // a row that sees nothing gives the mean of all slots
  Rope rope;                   // of the query
  int64_t position_shift = 0;
  ScaleSource key_scale = ScaleSource::kOwn, value_scale = ScaleSource::kOwn;
  DType stored_type = DType::kF16;  // that the cache's bytes are read as
  /// The plugin's arithmetic, where it is not the declared one.
  std::optional<DeclaredProfile> arithmetic;
  bool operator==(const Reading&) const = default;
};

/// Slots [first, last].
struct SlotHull {
  uint32_t first = 0, last = 0;
  bool operator==(const SlotHull&) const = default;
};

/// The rows of a head group that a kernel computes side by side: the query heads of a KV head of
/// each query, in turn. 0: all rows of the request.
struct QueryTile {
  uint32_t rows = 0;
};

class Scene {
 public:
  /// `observation` must reach the step at `op_index`. The case must outlive the scene.
  Scene(const Case& c, const Observation& observation, uint32_t op_index);

  const Case& c() const { return case_; }
  const PlannedStep& step() const { return step_; }
  const Sequence& sequence(uint32_t row) const;
  uint32_t page_slots() const { return case_.pool.page_slots; }
  const DeclaredProfile& declared() const { return seen_.profile; }
  const std::string& variant() const { return seen_.variant; }
  bool has_values() const { return !seen_.layers.empty(); }

  /// Every row whose values the contract fixes (PAD rows only where the plugin computes them).
  const std::vector<RowAt>& rows() const { return rows_; }
  Reading honest(const RowAt& at) const;
  /// The last slot that the row may see under the case's causal rule; kv_length - 1 without one.
  int64_t limit(const RowAt& at) const;
  /// What causal limit, window and PAD show of the row's slots: neither tree nor mask tensor.
  const std::vector<uint8_t>& shown_by_rules(const RowAt& at) const;
  /// What the row's tree and mask tensor show: 1 for each slot where there are none.
  std::vector<uint8_t> shown_by_tensors(const RowAt& at) const;
  /// The queries of the row's tile, first and last.
  SlotHull queries_of_tile(const RowAt& at, QueryTile tile) const;
  /// Hull of what the tile's rows see by rules; nothing when they see nothing.
  std::optional<SlotHull> hull(const RowAt& at, QueryTile tile) const;
  /// Query rows of the step, each for all heads, in the order of the results.
  uint64_t tokens() const;
  uint64_t token(const RowAt& at) const;
  /// The row with this number, for the layer and head of `like`.
  RowAt row_of_token(uint64_t token, const RowAt& like) const;
  bool has_padded_layout() const;
  bool lse_is_head_major() const;

  bool contains(const RowAt& at, const Reading& reading) const;
  /// Observed LSE less that of the reading, natural logarithms; NaN where one is not finite.
  double lse_error(const RowAt& at, const Reading& reading) const;
  /// Is everything that it reads a number?
  bool is_finite(const Reading& reading) const;
  /// Writes what the reading gives into results of the same step: for simulated faults.
  void compute(const RowAt& at, const Reading& reading, std::vector<LayerResult>& layers) const;
  /// Visible slots' scores, for hypotheses that need them; a zero key's is its logit.
  std::vector<double> scores(const Reading& reading) const;
  /// Visible slots' dot products, before any factor.
  std::vector<double> dots(const Reading& reading) const;

 private:
  struct Inputs {
    reference::RowInputs row;
    bool finite = true;
  };
  Inputs inputs(const Reading& reading) const;
  void fill_query(const Reading& reading, reference::RowInputs& row) const;
  void add_key(const Reading& reading, size_t slot, reference::RowInputs& row) const;
  /// The reading itself, or what a row that sees nothing stands for; nullopt: an empty row.
  std::optional<Reading> effective(const RowAt& at, const Reading& reading) const;
  std::vector<double> row_values(const Reading& reading, size_t slot, bool value) const;
  double scale_of(const Reading& reading, size_t slot, bool value) const;
  void turn_query(const Reading& reading, int64_t position, reference::RowInputs& row) const;
  double output(const RowAt& at, uint32_t column) const;
  float lse(const RowAt& at) const;
  bool outputs_are(const RowAt& at, bool nan) const;
  bool contains_empty(const RowAt& at, const Reading& reading) const;
  bool contains_lse(const RowAt& at, const Reading& reading) const;
  reference::Profile profile(const Reading& reading) const;
  double lse_of(const RowAt& at, const Reading& reading) const;
  std::vector<double> outputs_of(const RowAt& at, const Reading& reading) const;

  const Case& case_;
  Case untensored_;  // the same without a mask tensor
  const OpObservation& seen_;
  PluginFacts facts_;
  Timeline timeline_;
  PlannedStep step_;
  PoolImage pool_;
  reference::Profile profile_;
  std::vector<RowAt> rows_;
  /// Of every pairing and number of dimensions that was asked for.
  mutable std::map<std::pair<RopePairing, uint32_t>, reference::Rotator> rotators_;
  mutable std::map<std::pair<uint32_t, uint32_t>, std::vector<uint8_t>> rules_;  // row, query
};

}  // namespace kv
