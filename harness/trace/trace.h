// Purpose: real serving traces: what a service was asked for and how much it answered, and how an
// engine would schedule that into one case.
// Contract: reading is strict and bounded (trace_limits.h); a malformed text is one error that
// names the file and line. Two public formats:
//   - Azure LLM inference traces, CSV: TIMESTAMP,ContextTokens,GeneratedTokens; the last line may
//     lack its end;
//   - Mooncake, one JSON object a line: timestamp (ms), input_length, output_length and hash_ids,
//     one id for each 512-token block of the prompt, the last of which may be partial.
// Scheduling is a pure function of requests and options; arrival times do not enter.
// Example:
//   KV_ASSIGN_OR_RETURN(const auto requests, read_trace("azure_2023_conv.csv"));
//   KV_ASSIGN_OR_RETURN(Case c, trace_to_case(requests, {.requests = 8, .scale = 0.1}));
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/case/case.h"
#include "harness/core/result.h"

namespace kv {

inline constexpr uint64_t kTraceBlockTokens = 512;  // of one id of a Mooncake prompt

struct TraceRequest {
  uint64_t arrival_ns = 0;            // after the first request of the trace
  uint64_t prompt_tokens = 0;         // at least 1
  uint64_t output_tokens = 0;         // sampled tokens
  std::vector<uint64_t> blocks = {};  // Mooncake: ids; prompts that begin with the same share them
  bool operator==(const TraceRequest&) const = default;
};

/// By the file's name: *.csv is Azure's format, *.jsonl Mooncake's.
Result<std::vector<TraceRequest>> read_trace(const std::string& path);

/// The same for texts; `name` stands at the beginning of messages.
Result<std::vector<TraceRequest>> read_azure(std::string_view text, std::string_view name);
Result<std::vector<TraceRequest>> read_mooncake(std::string_view text, std::string_view name);

/// 4 query heads over 2 KV heads of dimension 64, one layer, fp16.
inline Shape trace_shape() {
  Shape shape;
  shape.query_heads = 4;
  shape.kv_heads = 2;
  return shape;
}

struct ScheduleOptions {
  uint64_t requests = 0;        // the first so many of the trace; 0: all
  double scale = 1;             // factor of every length, at least one token remains
  uint64_t chunk_tokens = 512;  // of a prompt, appended by one step
  uint32_t batch_slots = 8;     // requests that run at once
  uint32_t page_slots = 16;
  uint64_t seed = 0;  // of the data
  Shape shape = trace_shape();
};

/// Continuous batching: a request is admitted in file order as soon as a batch slot is free, its
/// prompt is appended in chunks, then each sampled token but the last (which no engine appends),
/// all running requests together in mixed steps; it finishes at the end. The pool fits exactly what
/// is held at once, and a few spare pages. The case passes check_case.
Result<Case> trace_to_case(const std::vector<TraceRequest>& requests,
                           const ScheduleOptions& options);

}  // namespace kv
