// Purpose: what a service's queue and memory do under a trace: who is admitted when, by the worst
// case of pages, under static or continuous batching; counted, without running anything.
// Contract: a pure function of trace and options, in engine steps: no clock. Requests are taken in
// file order, and the first that must wait holds back those behind it. When they come says
// arrivals.h: at their recorded times, in steps of `step_ns`, or, with 0, all at the beginning; at
// most `concurrency` are open. Steps in which nothing runs pass, and are not counted in `steps`.
// A request appends all but its last sampled token. Decode only (chunk_tokens 0): the prompt is in
// the cache on admission, and each sampled token takes a step; else the prompt takes a step for
// each chunk, the last of which samples the first token. Time in K/V bytes: the bytes that
// attention has read so far, each running row's cache once a step. Example:  Served s =
// serve(requests, {.batching = Batching::kStatic, .batch_slots = 8});
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/trace/trace.h"

namespace kv {

enum class Batching : uint8_t {
  kStatic,     // a batch is admitted together, when the one before it has ended
  kContinuous  // a request takes the place of one that ended
};

struct ServeOptions {
  Batching batching = Batching::kContinuous;
  uint32_t batch_slots = 8;    // at least 1
  uint64_t concurrency = 0;    // open requests; 0: any number
  uint64_t step_ns = 0;        // duration of a step; 0: arrival times are not looked at
  uint64_t chunk_tokens = 0;   // 0: decode only
  uint32_t page_slots = 16;    // at least 1
  uint64_t pool_pages = 0;     // 0: unbounded
  uint64_t context_limit = 0;  // slots of one request; 0: none
  uint64_t token_bytes = 1;    // K and V of a token in all layers
};

struct Moment {
  uint64_t step = 0, bytes = 0;
};

struct ServedRequest {
  bool refused = false;  // longer than the context limit, or than the whole pool
  uint64_t slots = 0;    // that it holds in the end
  Moment arrived, admitted, finished;
};

struct Served {
  std::vector<ServedRequest> requests;  // as in the trace
  uint64_t steps = 0;                   // in which anything ran
  uint64_t refused = 0;
  uint64_t batch_peak = 0, pages_peak = 0;  // reserved by worst case
  uint64_t row_steps = 0;                   // sum over steps of running rows
};

Served serve(std::span<const TraceRequest> trace, const ServeOptions& options);

/// The value that `percent` of 100 of the values do not exceed (nearest rank); 0 of none.
uint64_t percentile(std::vector<uint64_t> values, uint32_t percent);

}  // namespace kv
