// Purpose: when the requests of a trace are there to be served, in engine steps.
// Contract: with `step_ns` a request comes at the first step boundary at or after its recorded
// time, and no earlier than those before it in the file; without, all come at the beginning.
// `concurrency` bounds how many are open: with recorded times the rest wait outside (their wait
// counts from when they came); without, a request comes when its turn does (a closed loop of
// clients). Example:  Arrivals arrivals(trace, options);  arrivals.let_in(now, completed,
// requests);
#pragma once

#include <optional>

#include "harness/trace/serve.h"

namespace kv {

class Arrivals {
 public:
  Arrivals(std::span<const TraceRequest> trace, const ServeOptions& options)
      : trace_(trace), step_ns_(options.step_ns), concurrency_(options.concurrency) {}

  /// Notes who has come by now; returns how many of the trace may be admitted.
  size_t let_in(const Moment& now, uint64_t completed, std::span<ServedRequest> requests) {
    while (came_ < trace_.size() && step_of(came_) <= now.step &&
           (step_ns_ > 0 || is_open(came_, completed))) {
      requests[came_++].arrived = now;
    }
    while (let_in_ < came_ && is_open(let_in_, completed)) ++let_in_;
    return let_in_;
  }

  /// The step at which the next request comes; nothing when all have.
  std::optional<uint64_t> next_step() const {
    return came_ < trace_.size() ? std::optional(step_of(came_)) : std::nullopt;
  }

 private:
  uint64_t step_of(size_t index) const {
    return step_ns_ == 0 ? 0 : (trace_[index].arrival_ns + step_ns_ - 1) / step_ns_;
  }
  bool is_open(size_t index, uint64_t completed) const {
    return concurrency_ == 0 || index < completed + concurrency_;
  }

  std::span<const TraceRequest> trace_;
  uint64_t step_ns_, concurrency_;
  size_t came_ = 0, let_in_ = 0;
};

}  // namespace kv
