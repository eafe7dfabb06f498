#include "harness/serving/batching.h"

#include <algorithm>

#include "harness/case/pages.h"
#include "harness/serving/bounded_cache.h"
#include "harness/serving/trace_tokens.h"
#include "harness/trace/arrivals.h"

namespace kv {
namespace {

struct RunningRow {
  size_t index = 0;  // in the trace
  kvattn::Handle handle;
  uint64_t steps_left = 0;
  std::vector<kvattn::Token> prompt;  // while some of it is not appended
};

class ManagedRun {
 public:
  ManagedRun(std::span<const TraceRequest> trace, const ServeOptions& options,
             kvattn::PagedCache cache)
      : trace_(trace), options_(options), cache_(std::move(cache)), arrivals_(trace, options) {
    result_.served.requests.resize(trace.size());
    result_.pool_pages = static_cast<uint64_t>(cache_.config().pages.value);
    holders_.resize(result_.pool_pages);
    contiguous_.emplace(result_.pool_pages);
  }

  ManagedService run() {
    while (true) {
      admit();
      if (!running_.empty()) {
        step();
      } else if (const auto next = arrivals_.next_step()) {
        now_.step = *next;
      } else {
        break;
      }
    }
    result_.hit_pages = cache_.counters().hit_pages;
    result_.evicted_pages = cache_.counters().evicted_pages;
    result_.blocked_by_gaps = contiguous_->blocked_by_gaps();
    result_.without_room = contiguous_->without_room();
    return std::move(result_);
  }

 private:
  void let_arrive() { arrived_ = arrivals_.let_in(now_, completed_, result_.served.requests); }

  void admit() {
    const bool closed = options_.batching == Batching::kStatic && !running_.empty();
    let_arrive();
    while (!closed && next_ < arrived_ && running_.size() < options_.batch_slots) {
      if (!start(next_)) break;
      ++next_;
      let_arrive();
    }
    Served& served = result_.served;
    served.batch_peak = std::max<uint64_t>(served.batch_peak, running_.size());
    served.pages_peak = std::max(served.pages_peak, pages_reserved_);
  }

  uint64_t worst_pages(size_t index) const {
    const auto slots = static_cast<int64_t>(result_.served.requests[index].slots);
    return static_cast<uint64_t>(cache_.worst_case(kvattn::SlotCount(slots)).value);
  }

  // False: the manager has no room now.
  bool start(size_t index) {
    ServedRequest& served = result_.served.requests[index];
    served.slots = slots_of(trace_[index]);
    RunningRow row{.index = index};
    tokens_.prompt(trace_[index], index, row.prompt);
    const auto handle = cache_.admit({.request = static_cast<kvattn::RequestId>(index),
                                      .prompt = row.prompt,
                                      .slots_max = kvattn::SlotCount(served.slots)});
    if (!handle.ok() && handle.status().code() == kvattn::StatusCode::kExhausted) return false;
    served.admitted = now_;
    if (!handle.ok()) {
      served.refused = true;
      ++result_.served.refused;
      return finish(index);
    }
    row.handle = *handle;
    pages_reserved_ += worst_pages(index);
    contiguous_->reserve(index, worst_pages(index));
    if (options_.chunk_tokens == 0) {
      append_prompt(row);
      row.steps_left = trace_[index].output_tokens;
    } else {
      const uint64_t left = row.prompt.size() - static_cast<uint64_t>(handle->length.value);
      row.steps_left = (left + options_.chunk_tokens - 1) / options_.chunk_tokens + served.slots -
                       row.prompt.size();
      // A prompt that is all there still takes a step, which samples its first token.
      if (left == 0) ++row.steps_left;
    }
    if (row.steps_left == 0) return end(row);
    running_.push_back(std::move(row));
    return true;
  }

  void append_prompt(RunningRow& row) {
    const auto length = static_cast<size_t>(row.handle.length.value);
    launch({{.handle = row.handle, .tokens = std::span(row.prompt).subspan(length)}});
    row.handle.length = kvattn::SlotCount(std::ssize(row.prompt));
    row.prompt = {};
  }

  void launch(const std::vector<kvattn::AppendRow>& rows) {
    const auto step = cache_.step(rows);
    KV_CHECK(step.ok(), step.status().text());
    KV_CHECK(cache_.complete(step->number).ok(), "the step is in flight");
  }

  bool finish(size_t index) {
    result_.served.requests[index].finished = now_;
    ++completed_;
    return true;
  }

  bool end(const RunningRow& row) {
    for (const kvattn::Page page : cache_.table(row.handle, kvattn::Group{0})) {
      uint32_t& holders = holders_[static_cast<size_t>(kvattn::index_of(page))];
      if (holders <= 1) ++result_.returned_pages;
      holders -= std::min(holders, 1u);
    }
    contiguous_->release(row.index);
    KV_CHECK(cache_.release(row.handle).ok(), "the request exists");
    pages_reserved_ -= worst_pages(row.index);
    return finish(row.index);
  }

  // What the row appends in this step.
  std::span<const kvattn::Token> tokens_of(const RunningRow& row, kvattn::Token& sampled) const {
    const auto length = static_cast<uint64_t>(row.handle.length.value);
    if (length < row.prompt.size()) {
      const uint64_t left = row.prompt.size() - length;
      return std::span(row.prompt).subspan(length, std::min(left, options_.chunk_tokens));
    }
    const bool appends = row.steps_left > 0 && length < result_.served.requests[row.index].slots;
    const bool samples_first = options_.chunk_tokens > 0 && !row.prompt.empty();
    if (!appends || samples_first) return {};
    sampled = TraceTokens::sampled(row.index, length);
    return {&sampled, 1};
  }

  void step() {
    ++now_.step;
    ++result_.served.steps;
    result_.served.row_steps += running_.size();
    std::vector<kvattn::Token> sampled(running_.size());
    std::vector<kvattn::AppendRow> rows;
    for (size_t i = 0; i < running_.size(); ++i) {
      rows.push_back({.handle = running_[i].handle, .tokens = tokens_of(running_[i], sampled[i])});
    }
    launch(rows);
    for (size_t i = 0; i < running_.size(); ++i) {
      RunningRow& row = running_[i];
      row.handle.length += kvattn::SlotCount(std::ssize(rows[i].tokens));
      if (row.handle.length.value >= std::ssize(row.prompt)) row.prompt = {};
      now_.bytes += static_cast<uint64_t>(row.handle.length.value) * options_.token_bytes;
      --row.steps_left;
    }
    observe();
    std::erase_if(running_, [&](const RunningRow& row) { return row.steps_left == 0 && end(row); });
  }

  void observe() {
    PoolMoment moment{.step = now_.step,
                      .requests = running_.size(),
                      .returned_pages = result_.returned_pages,
                      .contiguous = contiguous_->space()};
    std::ranges::fill(holders_, 0);
    for (const RunningRow& row : running_) {
      moment.held_slots += static_cast<uint64_t>(row.handle.length.value);
      for (const kvattn::Page page : cache_.table(row.handle, kvattn::Group{0})) {
        ++moment.table_pages;
        if (holders_[static_cast<size_t>(kvattn::index_of(page))]++ == 0) ++moment.held_pages;
      }
    }
    result_.moments.push_back(moment);
  }

  std::span<const TraceRequest> trace_;
  const ServeOptions& options_;
  kvattn::PagedCache cache_;
  Arrivals arrivals_;
  TraceTokens tokens_;
  ManagedService result_;
  std::vector<RunningRow> running_;
  std::vector<uint32_t> holders_;  // [page]; block tables that had it after the last step
  std::optional<ContiguousArena> contiguous_;
  Moment now_;
  size_t next_ = 0, arrived_ = 0;
  uint64_t completed_ = 0, pages_reserved_ = 0;
};

}  // namespace

Result<ManagedService> serve_managed(std::span<const TraceRequest> trace,
                                     const ServeOptions& options) {
  KV_CHECK(options.batch_slots >= 1 && options.page_slots >= 1, "nothing could run");
  KV_RETURN_IF_ERROR(check_tokens(trace));
  const uint64_t longest = longest_request(trace);
  const uint64_t limit = options.context_limit > 0 ? options.context_limit : longest;
  const uint64_t slots_max = std::min(limit, longest);
  const uint64_t request_pages = pages_for(slots_max, options.page_slots);
  KV_ASSIGN_OR_RETURN(
      kvattn::PagedCache cache,
      bounded_cache({.pages = options.pool_pages > 0 ? options.pool_pages
                                                     : request_pages * options.batch_slots,
                     .page_slots = options.page_slots,
                     .slots_max = slots_max,
                     .batch_slots = options.batch_slots,
                     .prefix_index = std::ranges::any_of(
                         trace, [](const TraceRequest& r) { return !r.blocks.empty(); })}));
  return ManagedRun(trace, options, std::move(cache)).run();
}

}  // namespace kv
