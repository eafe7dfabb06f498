#include "harness/cli/trace_cases.h"

#include <algorithm>
#include <map>

#include "harness/case/pages.h"
#include "harness/trace/trace.h"

namespace kv::cli {
namespace {

// Walks the operations with lengths alone.
class WorkCounter {
 public:
  explicit WorkCounter(const Case& c) : case_(c) {
    for (const Op& operation : c.ops) {
      work_.op_work.push_back(0);
      std::visit([this](const auto& op) { visit(op); }, operation);
      work_.total_work += work_.op_work.back();
    }
  }
  TraceWork take() { return std::move(work_); }

 private:
  void visit(const op::Admit&) { ++work_.requests; }
  void visit(const op::Finish& finish) { lengths_.erase(finish.request); }
  void visit(const op::Cancel& cancel) { lengths_.erase(cancel.request); }
  template <class Other>
  void visit(const Other&) {}

  void visit(const op::Step& step) {
    ++work_.steps;
    uint64_t pairs = 0;
    for (const op::StepRow& row : step.rows) {
      uint64_t& length = lengths_[row.request];
      const uint64_t appended = uint64_t{row.pad_left} + row.append + row.pad_right;
      length += appended;
      work_.appended_tokens += appended;
      work_.query_rows += row.queries;
      pairs += appended + uint64_t{row.queries} * length;
    }
    const Shape& s = case_.shape;
    work_.op_work.back() = pairs * s.query_heads * (s.head_dim_k + s.head_dim_v) * s.layers;
    uint64_t pages = 0;
    for (const auto& [request, length] : lengths_)
      pages += pages_for(length, case_.pool.page_slots);
    work_.pages_peak = std::max(work_.pages_peak, pages);
  }

  const Case& case_;
  TraceWork work_;
  std::map<RequestId, uint64_t> lengths_;
};

}  // namespace

TraceWork trace_work(const Case& c) { return WorkCounter(c).take(); }

Result<TraceCase> make_trace_case(const TraceOptions& options) {
  KV_ASSIGN_OR_RETURN(const auto requests, read_trace(options.trace_path));
  TraceCase trace;
  KV_ASSIGN_OR_RETURN(
      trace.c, trace_to_case(requests, {.requests = options.requests, .scale = options.scale}));
  trace.requests = std::min<uint64_t>(options.requests, requests.size());
  for (uint64_t i = 0; i < trace.requests; ++i) {
    trace.prompt_tokens += requests[i].prompt_tokens;
    trace.output_tokens += requests[i].output_tokens;
  }
  return trace;
}

}  // namespace kv::cli
