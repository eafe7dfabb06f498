// Purpose: what the judge's tests share: judging a fake observation with one fault in it.
// Contract: set_output() changes layer 0; elements count in the order of LayerResult.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "harness/judge/fake_worker.h"
#include "harness/judge/judge.h"

namespace kv {

inline Verdict judge(const Case& c, const FakeFaults& faults = {}, JudgeOptions options = {}) {
  return judge_observation(c, fake_observation(c, faults), options);
}

inline void expect_fails(const Verdict& v, Stage stage, const std::string& failure_class) {
  EXPECT_EQ(v.outcome, Outcome::kFail) << v.message;
  EXPECT_EQ(v.stage, stage) << v.message;
  EXPECT_EQ(v.failure_class, failure_class) << v.message;
}

#define EXPECT_FAILS(verdict, stage, failure_class) \
  do {                                              \
    SCOPED_TRACE("here");                           \
    expect_fails(verdict, stage, failure_class);    \
  } while (false)

/// An observation changed at the end.
inline FakeFaults at_end(std::function<void(Observation&)> change) {
  FakeFaults faults;
  faults.finish = std::move(change);
  return faults;
}

inline void set_output(Observation& o, size_t op, size_t element, uint16_t bits) {
  std::memcpy(&o.ops[op].layers[0].output[element * 2], &bits, 2);
}

/// One request's single new token never shows one older key.
inline FakeFaults dropped_key() {
  FakeFaults faults;
  faults.visible = [](const PlannedRow& row, uint32_t query, std::vector<uint8_t>& visible) {
    if (row.request == RequestId{0} && row.append_slots == 1 && query == 0) visible[5] = 0;
  };
  return faults;
}

}  // namespace kv
