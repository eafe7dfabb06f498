#include "harness/trace/serve.h"

#include <algorithm>

#include "harness/core/check.h"
#include "harness/trace/arrivals.h"

namespace kv {
namespace {

uint64_t quotient_up(uint64_t value, uint64_t by) { return (value + by - 1) / by; }

struct RunningRow {
  size_t index = 0;          // in the trace
  uint64_t prompt_left = 0;  // not yet appended
  uint64_t steps_left = 0;
  uint64_t length = 0;
};

class Service {
 public:
  Service(std::span<const TraceRequest> trace, const ServeOptions& options)
      : trace_(trace), options_(options), arrivals_(trace, options) {
    served_.requests.resize(trace.size());
  }

  Served run() {
    while (true) {
      admit();
      if (!running_.empty()) {
        step();
      } else if (const auto next = arrivals_.next_step()) {
        now_.step = *next;
      } else {
        return std::move(served_);
      }
    }
  }

 private:
  void let_arrive() { arrived_ = arrivals_.let_in(now_, completed_, served_.requests); }

  void admit() {
    const bool closed = options_.batching == Batching::kStatic && !running_.empty();
    let_arrive();
    while (!closed && next_ < arrived_ && running_.size() < options_.batch_slots) {
      const TraceRequest& request = trace_[next_];
      ServedRequest& served = served_.requests[next_];
      served.slots = request.prompt_tokens + std::max<uint64_t>(request.output_tokens, 1) - 1;
      const uint64_t pages = quotient_up(served.slots, options_.page_slots);
      served.refused = (options_.pool_pages > 0 && pages > options_.pool_pages) ||
                       (options_.context_limit > 0 && served.slots > options_.context_limit);
      if (!served.refused && options_.pool_pages > 0 &&
          pages > options_.pool_pages - pages_reserved_) {
        break;
      }
      start(next_++, pages);
      let_arrive();
    }
    served_.batch_peak = std::max<uint64_t>(served_.batch_peak, running_.size());
    served_.pages_peak = std::max(served_.pages_peak, pages_reserved_);
  }

  void start(size_t index, uint64_t pages) {
    ServedRequest& served = served_.requests[index];
    served.admitted = now_;
    const TraceRequest& request = trace_[index];
    RunningRow row{.index = index};
    if (options_.chunk_tokens == 0) {
      row.length = request.prompt_tokens;
      row.steps_left = request.output_tokens;
    } else {
      row.prompt_left = request.prompt_tokens;
      row.steps_left = quotient_up(request.prompt_tokens, options_.chunk_tokens) +
                       std::max<uint64_t>(request.output_tokens, 1) - 1;
    }
    if (served.refused) ++served_.refused;
    if (served.refused || row.steps_left == 0) {
      served.finished = now_;
      ++completed_;
      return;
    }
    pages_reserved_ += pages;
    running_.push_back(row);
  }

  void step() {
    ++now_.step;
    ++served_.steps;
    served_.row_steps += running_.size();
    for (RunningRow& row : running_) {
      if (row.prompt_left > 0) {
        const uint64_t chunk = std::min(row.prompt_left, options_.chunk_tokens);
        row.prompt_left -= chunk;
        row.length += chunk;
      } else if (row.length < served_.requests[row.index].slots) {
        ++row.length;
      }
      now_.bytes += row.length * options_.token_bytes;
      --row.steps_left;
    }
    std::erase_if(running_, [&](const RunningRow& row) {
      if (row.steps_left > 0) return false;
      ServedRequest& served = served_.requests[row.index];
      served.finished = now_;
      pages_reserved_ -= quotient_up(served.slots, options_.page_slots);
      ++completed_;
      return true;
    });
  }

  std::span<const TraceRequest> trace_;
  const ServeOptions& options_;
  Arrivals arrivals_;
  Served served_;
  std::vector<RunningRow> running_;
  Moment now_;
  size_t next_ = 0, arrived_ = 0;
  uint64_t completed_ = 0, pages_reserved_ = 0;
};

}  // namespace

Served serve(std::span<const TraceRequest> trace, const ServeOptions& options) {
  KV_CHECK(options.batch_slots >= 1 && options.page_slots >= 1, "nothing could run");
  return Service(trace, options).run();
}

uint64_t percentile(std::vector<uint64_t> values, uint32_t percent) {
  KV_CHECK(percent >= 1 && percent <= 100, "a percentage");
  if (values.empty()) return 0;
  const size_t rank = (values.size() * percent + 99) / 100;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(rank - 1), values.end());
  return values[rank - 1];
}

}  // namespace kv
