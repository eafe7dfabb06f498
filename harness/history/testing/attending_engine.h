// Purpose: the plain engine, with attention in double over the slots that it holds, and one wrong
// in a chosen way. Contract: the faults of the first group are found by values alone; those of the
// second stay within every bound, and only a twin shows them (twin.h). Example:  AttendingEngine
// engine(c, Wrong::kScale);  run_history(c, engine, {.value_steps = 1});
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "harness/case/head_inputs.h"
#include "harness/history/testing/plain_engine.h"
#include "reference/rope.h"

namespace kv {

enum class Wrong : uint8_t {
  kNothing,
  kNewestKey,  // a query does not see its own slot
  kScale,
  kOtherRow,
  kUnwritten,
  kMissing,  // a layer
  kBaseTwo,  // LSE
  // Where append rotates or quantises:
  kQueryTurnedTooFar,  // by one position
  kQueryNotTurned,
  kValueByKeyScale,  // V is dequantised by the scale of K
  kScaleOfNewest,    // all codes by the scale of the newest slot that is seen
  // One unit in the last place of the LSE, of ...
  kInCompany,      // steps with more than one row
  kAfterTruncate,  // requests that took something back
  kAfterCancel,    // everybody, once somebody was cancelled
  kAfterReorder,   // beams that were moved
  kAfterResume,    // requests that gave way
  kAfterRestore,   // requests that came from bytes
};

class AttendingEngine final : public Engine {
 public:
  AttendingEngine(const Case& c, Wrong wrong, Fault fault = Fault::kNone)
      : case_(c), wrong_(wrong), content_(c), plain_(c, fault), rotator_(c.shape.rope, {}) {}

  Answer perform(const Call& call) override;
  Result<EngineState> snapshot(CacheKind cache) override { return plain_.snapshot(cache); }
  std::vector<SlotBytes> read(CacheKind cache, std::span<const SlotPlace> places) override {
    return plain_.read(cache, places);
  }
  StepOutputs take_outputs(uint64_t step) override { return std::exchange(outputs_[step], {}); }

 private:
  struct Out {
    std::vector<std::byte>& output;
    std::vector<float>& lse;
    bool nudged = false;
  };
  void remember(const Call& call);
  bool is_nudged(const call::Step& step, RequestId request) const;
  void attend(const call::Step& step, uint64_t number);
  void leave_out(const call::StepRow& row, const Out& out) const;
  void attend_row(const call::StepRow& row, uint32_t q, ContentLayer at, int64_t window,
                  const Out& out);
  /// One query head: what it asks with, and where it stands.
  struct Asking {
    std::span<const double> query;
    HeadPlace head;
    int64_t slot = 0;
  };
  void append_head(const std::vector<SlotBytes>& held, const std::vector<SlotPlace>& places,
                   const Asking& asking, const Out& row_out) const;
  std::vector<double> query_of(const StoredToken& token, ContentLayer at) const;
  std::pair<double, double> scales_of(const std::vector<SlotBytes>& held, size_t slot,
                                      uint32_t kv_head) const;
  int64_t offset(CacheKind cache, RequestId request) {
    return plain_.snapshot(cache)->find(request)->position_offset;
  }

  const Case& case_;
  Wrong wrong_;
  Content content_;
  PlainEngine plain_;
  reference::Rotator rotator_;
  std::map<uint64_t, StepOutputs> outputs_;
  std::set<RequestId> marked_;
  bool cancelled_ = false;
};

}  // namespace kv
