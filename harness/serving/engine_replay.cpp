#include "harness/serving/engine_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "harness/case/limits.h"
#include "harness/case/pages.h"
#include "harness/case/validate.h"
#include "harness/core/philox.h"
#include "harness/serving/bounded_cache.h"
#include "harness/serving/trace_tokens.h"
#include "harness/trace/arrivals.h"

namespace kv {
namespace {

constexpr uint32_t kHeadDim = 8;
constexpr uint64_t kSampleUse = 0x73616d70;  // "samp": this use of the seed

RequestId id_of(size_t index) { return RequestId(static_cast<uint32_t>(index)); }

class Run {
 public:
  Run(std::span<const TraceRequest> trace, const EngineReplayOptions& options, const Case& c,
      Engine& engine, const Conventions& conventions)
      : trace_(trace),
        options_(options),
        // All bytes are looked at when an operation is suspicious, and at the end.
        judge_(c, engine,
               {.everything_every = UINT32_MAX,
                .value_steps = 1,
                .conventions = conventions,
                .keep_gone = false}),
        arrivals_(trace, {.step_ns = options.step_ns}) {
    result_.served.requests.resize(trace.size());
    const Content content(c);
    result_.token_bytes = c.shape.layers * (content.key_bytes() + content.value_bytes());
  }

  ReplayResult run(const std::function<bool(uint64_t)>& go_on) {
    while (!result_.finding && !result_.stopped) {
      admit();
      if (!running_.empty()) {
        step();
        result_.stopped = go_on && !go_on(completed_);
      } else if (const auto next = arrivals_.next_step()) {
        now_.step = *next;
      } else {
        break;
      }
    }
    if (!result_.finding && !result_.stopped) note(judge_.finish());
    result_.stats = judge_.stats();
    return std::move(result_);
  }

 private:
  bool perform(const Op& op, const Told* told = nullptr) {
    note(judge_.perform(op, told));
    return !result_.finding;
  }
  void note(MaybeFinding found) {
    if (found && !result_.finding) result_.finding = std::move(found);
  }
  const ModelRequest* model(size_t index) const { return judge_.model().find(id_of(index)); }

  void admit() {
    const size_t there = arrivals_.let_in(now_, completed_, result_.served.requests);
    // One that found no room is asked for again when another one has ended.
    const bool blocked = !running_.empty() && blocked_at_ == completed_;
    while (!blocked && next_ < there && running_.size() < options_.batch_slots &&
           !result_.finding) {
      if (!start(next_)) {
        blocked_at_ = completed_;
        break;
      }
      ++next_;
    }
    result_.served.batch_peak = std::max<uint64_t>(result_.served.batch_peak, running_.size());
  }

  // False: the engine has no room now.
  bool start(size_t index) {
    const TraceRequest& request = trace_[index];
    ServedRequest& served = result_.served.requests[index];
    served.slots = slots_of(request);
    const op::Admit admit{
        .request = id_of(index), .prompt_tokens = request.prompt_tokens, .slots_max = served.slots};
    tokens_.prompt(request, index, prompt_);
    Told told;
    told.tokens.emplace_back();
    for (const kvattn::Token token : prompt_) told.tokens[0].push_back(kvattn::index_of(token));
    if (!perform(admit, &told)) return false;
    served.admitted = now_;
    const ModelRequest* r = model(index);
    if (r == nullptr && !running_.empty()) return false;
    if (r == nullptr) {  // nobody else is there: it will never fit
      refuse(index);
      return true;
    }
    result_.prompt_slots += request.prompt_tokens;
    result_.hit_slots += r->slots.size();
    if (r->slots.size() < served.slots) {
      running_.push_back(index);
    } else {
      finish(index);
    }
    return true;
  }

  void finish(size_t index) {
    if (!perform(op::Finish{id_of(index)})) return;
    result_.served.requests[index].finished = now_;
    ++completed_;
  }

  void refuse(size_t index) {
    result_.served.requests[index].refused = true;
    ++result_.served.refused;
    ++completed_;
  }

  // An engine that promised more than it has has no room for the step: the newest request goes.
  void give_way() {
    perform(op::Cancel{id_of(running_.back())});
    refuse(running_.back());
    running_.pop_back();
  }

  uint64_t slots_held() const {
    uint64_t slots = 0;
    for (const size_t index : running_) slots += model(index)->slots.size();
    return slots;
  }

  op::StepRow row_of(size_t index) {
    const ModelRequest& r = *model(index);
    const uint64_t length = r.slots.size(), prompt = trace_[index].prompt_tokens;
    const uint64_t missing = length < prompt ? prompt - length : 1;
    const uint64_t most = std::min<uint64_t>(missing, options_.chunk_tokens);
    const uint64_t after = std::min(length + most, result_.served.requests[index].slots);
    // What a row says is counted without hits.
    op::StepRow row{.request = id_of(index),
                    .append = static_cast<uint32_t>(after - std::min(r.scheduled, after))};
    const uint64_t word = Philox{options_.seed}.word(kSampleUse, result_.rows++);
    row.queries = word % options_.sample_one_in == 0 ? 1 : 0;
    result_.rows_sampled += row.queries;
    return row;
  }

  void step() {
    op::Step step;
    for (const size_t index : running_) step.rows.push_back(row_of(index));
    const uint64_t before = slots_held();
    if (!perform(step)) return;
    const uint64_t appended = slots_held() - before;
    if (appended == 0) return give_way();
    result_.appended_slots += appended;
    ++now_.step;
    now_.bytes += (before + appended) * result_.token_bytes;
    ++result_.served.steps;
    result_.served.row_steps += running_.size();
    std::vector<size_t> rest;
    for (const size_t index : running_) {
      if (model(index)->slots.size() < result_.served.requests[index].slots) {
        rest.push_back(index);
      } else {
        finish(index);
      }
    }
    running_ = std::move(rest);
  }

  std::span<const TraceRequest> trace_;
  const EngineReplayOptions& options_;
  HistoryJudge judge_;
  Arrivals arrivals_;
  ReplayResult result_;
  TraceTokens tokens_;
  std::vector<kvattn::Token> prompt_;
  std::vector<size_t> running_;
  Moment now_;
  size_t next_ = 0;
  uint64_t completed_ = 0;
  std::optional<uint64_t> blocked_at_;  // requests that had ended by then
};

// Not the longest length for each of the batch: all of the pool is looked at after each operation.
uint64_t default_pool_pages(std::span<const TraceRequest> trace,
                            const EngineReplayOptions& options) {
  uint64_t pages = 0;
  for (const TraceRequest& request : trace)
    pages += pages_for(slots_of(request), options.page_slots);
  const uint64_t average = (pages + trace.size() - 1) / std::max<size_t>(trace.size(), 1);
  const uint64_t longest = pages_for(longest_request(trace), options.page_slots);
  return std::clamp(2 * average * options.batch_slots, longest, longest * options.batch_slots);
}

}  // namespace

Result<EngineReplay> EngineReplay::create(std::span<const TraceRequest> trace,
                                          const EngineReplayOptions& options) {
  KV_CHECK(options.sample_one_in >= 1 && options.batch_slots >= 1, "nothing could run");
  KV_RETURN_IF_ERROR(check_tokens(trace));
  const uint64_t longest = longest_request(trace);
  EngineReplay replay(trace, options);
  Case& c = replay.case_;
  c.name = "a serving trace";
  c.shape.head_dim_k = c.shape.head_dim_v = kHeadDim;
  c.data.design = Design::kSubsetSelect;  // real queries, every key counts: docs/numerics.md, E3
  c.data.seed = options.seed;
  const uint64_t pool =
      options.pool_pages > 0 ? options.pool_pages : default_pool_pages(trace, options);
  if (pool > limits::kPageCountMax) {
    return bad_input(fmt::format("page pool: expected at most {} pages, got {}; say --pool-pages",
                                 limits::kPageCountMax, pool));
  }
  c.pool = {.page_slots = options.page_slots, .page_count = static_cast<uint32_t>(pool)};
  c.engine = EngineLevel{.batch_slots = options.batch_slots,
                         .request_max = options.batch_slots,
                         .context_limit = static_cast<uint32_t>(longest),
                         .step_tokens_max = options.chunk_tokens,
                         .prefix_cache = !trace.empty() && !trace[0].blocks.empty()};
  KV_RETURN_IF_ERROR(check_case(c));
  return replay;
}

ReplayResult EngineReplay::run(Engine& engine, const Conventions& conventions,
                               const std::function<bool(uint64_t)>& go_on) const {
  return Run(trace_, options_, case_, engine, conventions).run(go_on);
}

}  // namespace kv
