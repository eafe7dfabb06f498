#include "harness/serving/fork_or_encode.h"

#include <algorithm>
#include <set>

#include "harness/case/pages.h"

namespace kv {
namespace {

constexpr uint32_t kHeadDim = 8;

// Hands everything on; counts what is appended and keeps all outputs.
class Recorder final : public Engine {
 public:
  explicit Recorder(Engine& engine) : engine_(engine) {}

  Answer perform(const Call& call) override {
    const auto* step = std::get_if<call::Step>(&call);
    Answer answer = engine_.perform(call);
    if (step == nullptr || answer.status != CallStatus::kOk) return answer;
    ++steps_;
    for (const call::StepRow& row : step->rows) projected_ += row.append;
    if (step->wants_outputs) {
      kept_ = engine_.take_outputs(answer.step);
      outputs_.insert(outputs_.end(), kept_.outputs.begin(), kept_.outputs.end());
    }
    return answer;
  }
  Result<EngineState> snapshot(CacheKind cache) override { return engine_.snapshot(cache); }
  std::vector<SlotBytes> read(CacheKind cache, std::span<const SlotPlace> places) override {
    return engine_.read(cache, places);
  }
  bool shift_turns() const override { return engine_.shift_turns(); }
  StepOutputs take_outputs(uint64_t) override { return std::move(kept_); }
  DeviceReport take_device_report() override { return engine_.take_device_report(); }

  void finish(Completions& out) {
    out.projected = projected_;
    out.steps = steps_;
    out.outputs = std::move(outputs_);
  }

 private:
  Engine& engine_;
  uint64_t projected_ = 0, steps_ = 0;
  StepOutputs kept_;  // of the last step
  std::vector<std::vector<std::byte>> outputs_;
};

class Completing {
 public:
  Completing(const Case& c, const ForkOptions& options, Engine& engine)
      : options_(options),
        engine_(engine),
        judge_(c, engine_, {.value_steps = 1, .conventions = options.conventions}) {}

  Completions forked() {
    admit(0);
    prefill(1);
    for (uint32_t i = 1; i < options_.completions; ++i) perform(op::Fork{RequestId(0), id(i)});
    return decode();
  }
  Completions encoded() {
    for (uint32_t i = 0; i < options_.completions; ++i) admit(i);
    prefill(options_.completions);
    return decode();
  }

 private:
  static RequestId id(uint32_t i) { return RequestId(i); }

  void perform(const Op& op) {
    if (!out_.finding) out_.finding = judge_.perform(op);
  }

  void admit(uint32_t i) {
    op::Admit admit{.request = id(i), .prompt_tokens = options_.prompt_tokens};
    if (i > 0) {
      admit.prefix_of = id(0);
      admit.prefix_tokens = options_.prompt_tokens;
    }
    perform(admit);
  }

  void step(uint32_t requests, uint32_t append, uint32_t queries) {
    op::Step step;
    for (uint32_t i = 0; i < requests; ++i) {
      step.rows.push_back({.request = id(i), .append = append, .queries = queries});
    }
    perform(step);
  }

  void prefill(uint32_t requests) {
    for (uint64_t done = 0; done < options_.prompt_tokens;) {
      const uint64_t most = options_.prompt_tokens - done;
      const auto chunk = static_cast<uint32_t>(std::min<uint64_t>(most, options_.chunk_tokens));
      step(requests, chunk, 0);
      done += chunk;
    }
  }

  Completions decode() {
    for (uint64_t i = 1; i < options_.output_tokens; ++i) step(options_.completions, 1, 1);
    if (!out_.finding) collect();
    engine_.finish(out_);  // before the request that the judge serves in the end
    if (!out_.finding) out_.finding = judge_.finish();
    return std::move(out_);
  }

  void collect() {
    for (uint32_t i = 0; i < options_.completions; ++i) {
      const ModelRequest* r = judge_.model().find(id(i));
      if (r == nullptr || r->slots.empty()) continue;
      const SlotPlace all{.holder = i, .slots = static_cast<uint32_t>(r->slots.size())};
      for (const SlotBytes& bytes : engine_.read(CacheKind::kTarget, {&all, 1})) {
        out_.stored.insert(out_.stored.end(), bytes.key.begin(), bytes.key.end());
        out_.stored.insert(out_.stored.end(), bytes.value.begin(), bytes.value.end());
      }
    }
    std::set<int32_t> pages;
    for (const RequestState& r : judge_.state().requests) {
      for (const auto& table : r.tables) pages.insert(table.begin(), table.end());
    }
    out_.pages = pages.size();
  }

  const ForkOptions& options_;
  Recorder engine_;
  HistoryJudge judge_;
  Completions out_;
};

}  // namespace

Case fork_case(const ForkOptions& o) {
  const uint64_t slots = o.prompt_tokens + std::max<uint64_t>(o.output_tokens, 1) - 1;
  const uint64_t pages = pages_for(slots, o.page_slots) + 1;
  Case c;
  c.name = "completions of one prompt";
  c.shape.head_dim_k = c.shape.head_dim_v = kHeadDim;
  c.data.design = Design::kNormal;  // every rounding shows in the bits
  c.data.seed = o.seed;
  c.pool = {.page_slots = o.page_slots, .page_count = static_cast<uint32_t>(pages * o.completions)};
  c.engine = EngineLevel{.batch_slots = o.completions,
                         .request_max = o.completions,
                         .context_limit = static_cast<uint32_t>(slots),
                         .step_tokens_max = o.chunk_tokens,
                         .prefix_cache = false};
  return c;
}

Completions complete_forked(const Case& c, const ForkOptions& options, Engine& engine) {
  return Completing(c, options, engine).forked();
}
Completions complete_encoded(const Case& c, const ForkOptions& options, Engine& engine) {
  return Completing(c, options, engine).encoded();
}

}  // namespace kv
