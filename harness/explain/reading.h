// Purpose: what attention of one query row was computed from, as data that a hypothesis can change.
// Contract: Scene is a case up to one step, with the cache as it was observed; honest() is the
// reading that the contract asks for. contains() says whether an observed row lies in the
// admissible interval of a reading: every output and, unless the reading leaves it open, the LSE.
// A reading of undefined bytes contains a NaN and nothing else.
// Example: Reading r = scene.honest(at); r.copies[5] = 1; if (scene.contains(at, r)) ...
#pragma once

#include <map>
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

struct Reading {
  /// [slots to the end of the last page]: 0 hidden, 1 visible, 2 twice.
  std::vector<uint32_t> copies;
  std::vector<SlotSource> sources;  // of each
  RowAt query;                      // whose query
  uint32_t key_head = 0, value_head = 0, layer = 0;
  double scale = 1, softcap = 0;
  double alibi_slope = 0;
  int64_t alibi_anchor = 0;  // slot that distances are measured from
  std::optional<double> sink;
  bool keys_as_values = false, values_as_keys = false;
  std::vector<double> bias;    // added to each slot's score beside ALiBi; empty: none
  double lse_factor = 1;       // times the declared base
  bool lse_open = false;       // the hypothesis says nothing of the LSE
  bool empty_is_mean = false;  // a row that sees nothing gives the mean of all slots
  Rope rope;                   // of the query
  int64_t position_shift = 0;
  ScaleSource key_scale = ScaleSource::kOwn, value_scale = ScaleSource::kOwn;
  DType stored_type = DType::kF16;  // that the cache's bytes are read as
  bool operator==(const Reading&) const = default;
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

  bool contains(const RowAt& at, const Reading& reading) const;
  /// Is everything that it reads a number?
  bool is_finite(const Reading& reading) const;
  /// Writes what the reading gives into results of the same step: for simulated faults.
  void compute(const RowAt& at, const Reading& reading, std::vector<LayerResult>& layers) const;
  /// Visible slots' scores, for hypotheses that need them.
  std::vector<double> scores(const Reading& reading) const;

 private:
  struct Inputs;
  Inputs inputs(const Reading& reading) const;
  /// The reading itself, or what a row that sees nothing stands for; nullopt: an empty row.
  std::optional<Reading> effective(const RowAt& at, const Reading& reading) const;
  std::vector<double> row_values(const Reading& reading, size_t slot, bool value) const;
  double scale_of(const Reading& reading, size_t slot, bool value) const;
  void turn_query(const Reading& reading, int64_t position, reference::RowInputs& row) const;
  double output(const RowAt& at, uint32_t column) const;
  float lse(const RowAt& at) const;
  uint64_t token(const RowAt& at) const;

  const Case& case_;
  const OpObservation& seen_;
  PluginFacts facts_;
  Timeline timeline_;
  PlannedStep step_;
  PoolImage pool_;
  reference::Profile profile_;
  std::vector<RowAt> rows_;
  /// Of every pairing and number of dimensions that was asked for.
  mutable std::map<std::pair<RopePairing, uint32_t>, reference::Rotator> rotators_;
};

}  // namespace kv
