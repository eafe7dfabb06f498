// Purpose: is what a step attended to right? Its outputs, row by row, against the reference.
// Contract: Q, and where the cache holds what it is given K and V, are what the model knows the
// tokens to be: whether they lie there is provenance's question, and asked before (due). Where
// append rotates or quantises, K and V are what the cache holds, read again once provenance has
// accepted it, times the scales; Q is turned by the position of its slot. Steps are a sample,
// chosen by the case's data seed; all rows, layers and heads of a chosen step are judged once it
// has ended and no other is in flight: bytes cannot be looked at before that. Bounds allow for any
// arithmetic of a sound kernel (an engine declares none). An engine without attention is asked
// once. With an Echo, the outputs of all steps are asked for and handed to it, those that are no
// sample too. Not judged: queries of slots that a shift has moved, whose position is the engine's
// to say; and, counted, rotated or quantised K and V that are no longer there.
// Example:  if (values.wants(step)) ... values.note(model, step, number);
//           check the bytes of values.due(model);
//           if (auto found = values.judge(model, engine)) return found;
#pragma once

#include <cstdint>
#include <vector>

#include "harness/engine/content.h"
#include "harness/engine/engine.h"
#include "harness/history/echo.h"
#include "harness/history/finding.h"
#include "harness/history/model.h"
#include "reference/attention.h"
#include "reference/stored_row.h"

namespace kv {

struct ValueCounts {
  uint64_t steps = 0, steps_judged = 0;  // with queries; of them, those chosen
  uint64_t rows = 0, elements = 0;       // query rows of one head, and their outputs and LSE
  uint64_t rows_unread = 0;              // not judged: what they saw is no longer there
  uint64_t repeats = 0, shared = 0;      // rows that an equal one was held against: see Echo
  bool not_offered = false;              // the engine has no attention
  ValueCounts& operator+=(const ValueCounts& other);
};

class Values {
 public:
  /// `fraction` of the steps that have queries; 0: none. `echo` may be null.
  Values(const Case& c, double fraction, const Conventions& conventions, Echo* echo);

  /// Whether to ask for the outputs of a step that is lawful.
  bool wants(const call::Step& step);
  void not_offered() { counts_.not_offered = true; }
  /// A step that has been launched with outputs; `model` has it already.
  void note(const Model& model, const call::Step& step, uint64_t number);
  /// A call that has succeeded: bytes of rows that wait may be others from now on.
  void outdate(const Call& call);
  /// The slots that judge() is about to take for what rows attended to.
  std::vector<Touched> due(const Model& model) const;
  /// Those noted that have ended, if no step is in flight; or else if too many wait.
  MaybeFinding judge(const Model& model, Engine& engine);

  ValueCounts counts() const;

 private:
  struct Row {
    RequestId request = {};
    std::vector<StoredToken> slots;  // after the step
    uint32_t append = 0, queries = 0;
    std::vector<int32_t> tree_parents;
    int64_t position_offset = 0;
    bool is_gone = false;      // cancelled while the step ran
    bool is_outdated = false;  // the cache may hold something else by now
  };
  struct Step {
    uint64_t number = 0;
    bool draft = false, judged = false;
    std::vector<Row> rows;
  };
  struct LayerRows {
    const Row* row = nullptr;
    ContentLayer layer;
    int64_t window_left = -1;
    const std::byte* output = nullptr;      // [queries, query_heads, head_dim_v]
    const float* lse = nullptr;             // of the step's first query and head
    uint64_t first_query = 0, queries = 0;  // of the step: the row's first, and all
    bool is_held = false;                   // the cache holds what the row attended to
  };
  /// One query row of one head.
  struct Got {
    const std::byte* output = nullptr;
    float lse = 0;
  };

  bool is_held(const Row& row, const Model& model) const;
  MaybeFinding judge_step(const Step& step, const Model& model, Engine& engine);
  MaybeFinding judge_layer(const LayerRows& at, Engine& engine);
  void make_content(const LayerRows& at);
  void read_held(const LayerRows& at, Engine& engine);
  void keep_held(const SlotPlace& place, const SlotBytes& got);
  MaybeFinding judge_head(const LayerRows& at, uint32_t kv_head,
                          const std::vector<std::vector<uint8_t>>& visible);
  bool sees_unread(const std::vector<uint8_t>& visible) const;
  /// One head of what the row attended to.
  struct HeadCache {
    std::vector<const std::byte*> keys, values;  // [slot]; nullptr where nothing is known
    std::vector<float> key_scales, value_scales;
  };
  HeadCache head_cache(uint32_t kv_head) const;
  void rotate(int64_t position, reference::QueryRow& row, reference::RotatedRow& rotated) const;
  MaybeFinding judge_output(const reference::HeadBlock& block, size_t row,
                            const reference::RowEstimate& estimate, const Got& got);
  MaybeFinding judge_lse(const reference::HeadBlock& block, size_t row,
                         const reference::RowEstimate& estimate, float got);
  MaybeFinding hear(const Step& step, const LayerRows& at);
  uint64_t echo_key(const Row& row, uint32_t query, ContentLayer layer) const;
  float lse_of(const LayerRows& at, uint64_t query, uint64_t head) const;
  size_t output_bytes(const Row& row) const;
  int64_t window_left(const Step& step, uint32_t layer) const;

  const Case& case_;
  Content content_;
  std::vector<CacheGroup> groups_;
  double fraction_;
  const Conventions conventions_;
  Echo* echo_;
  bool judged_next_ = false;  // of the step that was asked about last
  reference::StoredRows stored_;
  bool is_plain_;  // K and V are stored as they are given, and Q is asked as it is given
  reference::Profile profile_;
  reference::HeadEstimator estimator_;
  std::vector<Step> noted_;
  // Of one layer of one row:
  std::vector<std::byte> keys_, values_, queries_;
  std::vector<float> key_scales_, value_scales_;  // [slots, kv_heads]; none without scales
  std::vector<uint8_t> known_;                    // [slot]: what it held
  ValueCounts counts_;
};

}  // namespace kv
