#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/case/limits.h"
#include "harness/case/pages.h"
#include "harness/case/validate.h"
#include "harness/trace/trace.h"

namespace kv {
namespace {

constexpr uint32_t kSparePages = 8;  // never owned: reading one is a finding

struct Running {
  RequestId request;
  uint64_t prompt = 0, decode = 0;  // tokens still to append
  uint64_t slots = 0;
};

uint64_t scaled(uint64_t tokens, double scale) {
  if (tokens == 0) return 0;
  return std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(tokens) * scale));
}

// Which earlier prompt begins with the same blocks, as the trace's block ids say. An id need not
// say what comes before it: a prompt shares a block only with those that have the same ones before
// it.
class Prefixes {
 public:
  // Adds request `id`; returns the owner of the longest known prefix and its length in tokens.
  std::pair<std::optional<RequestId>, uint64_t> add(RequestId id, const TraceRequest& request) {
    uint64_t place = kRoot, known = 0;
    std::optional<RequestId> owner;
    for (const uint64_t block : request.blocks) {
      const auto [child, fresh] =
          tree_.emplace(std::pair(place, block), Child{tree_.size() + 1, id});
      if (!fresh) {
        owner = child->second.owner;
        ++known;
      }
      place = child->second.place;
    }
    return {owner, known * kTraceBlockTokens};
  }

 private:
  static constexpr uint64_t kRoot = 0;
  struct Child {
    uint64_t place = 0;
    RequestId owner;  // the first request that came by
  };
  std::map<std::pair<uint64_t, uint64_t>, Child> tree_;  // (place, block id)
};

class Scheduler {
 public:
  Scheduler(const std::vector<TraceRequest>& requests, const ScheduleOptions& options)
      : requests_(requests), options_(options) {
    count_ =
        options.requests ? std::min<uint64_t>(options.requests, requests.size()) : requests.size();
  }

  Case run() {
    Case c;
    c.shape = options_.shape;
    while (true) {
      admit(c.ops);
      if (running_.empty()) break;
      step(c.ops);
    }
    c.pool.page_slots = options_.page_slots;
    c.pool.page_count = static_cast<uint32_t>(pages_peak_ + kSparePages);
    c.data.seed = options_.seed;
    return c;
  }

 private:
  void admit(std::vector<Op>& ops) {
    while (running_.size() < options_.batch_slots && next_ < count_) {
      const TraceRequest& request = requests_[next_];
      const RequestId id(static_cast<uint32_t>(next_++));
      const uint64_t prompt = scaled(request.prompt_tokens, options_.scale);
      const uint64_t output = scaled(request.output_tokens, options_.scale);
      op::Admit admit{.request = id, .prompt_tokens = prompt};
      const auto [owner, tokens] = prefixes_.add(id, request);
      if (owner) {
        admit.prefix_of = owner;
        const uint64_t shared =
            std::min({tokens, request.prompt_tokens, requests_[owner->value].prompt_tokens});
        admit.prefix_tokens = std::min(prompt, scaled(shared, options_.scale));
      }
      ops.emplace_back(admit);
      running_.push_back({id, prompt, output > 0 ? output - 1 : 0, 0});
    }
  }

  void step(std::vector<Op>& ops) {
    op::Step step;
    uint64_t pages = 0;
    for (Running& r : running_) {
      uint64_t& left = r.prompt > 0 ? r.prompt : r.decode;
      const uint64_t want = r.prompt > 0 ? options_.chunk_tokens : 1;
      const auto append = static_cast<uint32_t>(std::min(left, want));
      step.rows.push_back({.request = r.request, .append = append, .queries = append});
      left -= append;
      r.slots += append;
      pages += pages_for(r.slots, options_.page_slots);
    }
    pages_peak_ = std::max(pages_peak_, pages);
    ops.emplace_back(std::move(step));
    for (const Running& r : running_) {
      if (r.prompt + r.decode == 0) ops.emplace_back(op::Finish{r.request});
    }
    std::erase_if(running_, [](const Running& r) { return r.prompt + r.decode == 0; });
  }

  const std::vector<TraceRequest>& requests_;
  const ScheduleOptions& options_;
  Prefixes prefixes_;
  std::vector<Running> running_;
  uint64_t next_ = 0, count_ = 0, pages_peak_ = 0;
};

Result<void> check_options(const ScheduleOptions& options) {
  const auto refuse = [](std::string_view what, std::string_view expected, auto got) {
    return bad_input(fmt::format("{}: expected {}, got {}", what, expected, got));
  };
  if (!std::isfinite(options.scale) || options.scale <= 0 || options.scale > 1000) {
    return refuse("scale", "a number above 0 and at most 1000", options.scale);
  }
  if (options.chunk_tokens == 0 || options.chunk_tokens > limits::kRowTokensMax) {
    return refuse("chunk tokens", "1 to 131072", options.chunk_tokens);
  }
  if (options.batch_slots == 0 || options.batch_slots > limits::kStepRowsMax) {
    return refuse("batch slots", "1 to 1024", options.batch_slots);
  }
  return {};
}

// Before a schedule is built: would it exceed the case's limits anyway?
Result<void> check_size(const std::vector<TraceRequest>& requests, const ScheduleOptions& options) {
  const uint64_t count =
      options.requests ? std::min<uint64_t>(options.requests, requests.size()) : requests.size();
  uint64_t slots = 0;
  for (uint64_t i = 0; i < count; ++i) {
    slots += scaled(requests[i].prompt_tokens, options.scale) +
             scaled(requests[i].output_tokens, options.scale);
    if (slots > limits::kSlotsMax) {
      return bad_input(
          fmt::format("trace: {} requests hold more than {} tokens; take fewer "
                      "(--requests) or shorter ones (--scale)",
                      count, limits::kSlotsMax));
    }
  }
  return {};
}

}  // namespace

Result<Case> trace_to_case(const std::vector<TraceRequest>& requests,
                           const ScheduleOptions& options) {
  KV_RETURN_IF_ERROR(check_options(options));
  if (requests.empty()) return bad_input("trace: expected at least one request, got none");
  KV_RETURN_IF_ERROR(check_size(requests, options));
  Case c = Scheduler(requests, options).run();
  KV_RETURN_IF_ERROR(check_case(c));
  return c;
}

}  // namespace kv
