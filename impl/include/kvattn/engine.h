// Purpose: continuous batching over a PagedCache: requests come, fork, speculate, give way and go;
// each step mixes prefill chunks, decode rows and verify rows.
//
// Contract:
//  - The caller schedules: which requests, how many tokens. The engine places, moves, runs.
//  - A draft model has a cache of its own, without a prefix index: its rows are steps of their own,
//    and every other operation takes both caches along.
//  - Every operation is atomic, as in PagedCache. kFailed (the model or the device failed) leaves
//    an engine that refuses everything but its end.
//  - On return from step() at most async_depth steps are in flight, the newest; their outputs are
//    written when they complete.
//
// Example:
//   Engine engine = *Engine::create(config, {.model = &model, .target = make_host_store(size)});
//   Handle h = *engine.admit({.request = RequestId{1}, .prompt = tokens, ...});
//   const EngineRow row{.append = {.handle = h, .tokens = tokens}, .queries = 1};
//   engine.step({.rows = {&row, 1}, .results = results});
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kvattn/paged_cache.h"
#include "kvattn/store.h"

namespace kvattn {

/// One layer of one step, for the model.
struct LayerCall {
  int32_t layer = 0;
  bool draft = false;
  const Batch* batch = nullptr;
  StepTensors tensors;
  Store* store = nullptr;  // for upload()
};
class Model {
 public:
  virtual ~Model() = default;
  /// Writes K and V of the appended slots and, when the batch attends, Q of the query rows.
  virtual Status project(const LayerCall& call) = 0;
};

struct EngineConfig {
  PagedCacheConfig cache;
  int32_t draft_layers = 0;  // 0: there is no draft model
  PageCount draft_pages;
  int async_depth = 0;             // up to kStepsInFlightMax - 1
  bool whole_page_shifts = false;  // slots cannot change pages: pages have scales
};
/// What an engine is made of; the draft store only with a draft model.
struct EngineParts {
  Model* model = nullptr;
  std::unique_ptr<Store> target, draft;
};
/// The configuration of the draft model's cache.
PagedCacheConfig draft_cache_config(const EngineConfig& config);

struct EngineRow {
  AppendRow append;
  int64_t queries = 0;  // of the last slots; up to step_slots_max
  /// Index of each appended token's parent among them, -1: the slot before; empty: a chain. All of
  /// a tree is speculative. Until truncate and shift have left one path of it, the request can only
  /// be cut further, read or released.
  std::span<const int32_t> tree_parents = {};
  /// Released when this layer is about to begin; 0: not. The layers that are left run on for it:
  /// what it has published must be whole, and its pages wait for the step like any it touches.
  int32_t release_before_layer = 0;
};
enum class BatchLayout : uint8_t { kRagged, kPadLeft, kPadRight };
struct EngineStep {
  std::span<const EngineRow> rows;
  bool draft = false;
  BatchLayout layout = BatchLayout::kRagged;
  std::span<const LayerResult> results = {};  // [layers]; empty: appends only
};

class Engine {
 public:
  /// Ok: create() will take it, if there is memory.
  static Status check_config(const EngineConfig& config);
  static StatusOr<std::unique_ptr<Engine>> create(const EngineConfig& config, EngineParts parts);
  ~Engine();

  StatusOr<Handle> admit(const Admission& admission);
  StatusOr<StepNumber> step(const EngineStep& step);
  Status complete(StepNumber step);
  StatusOr<Handle> fork(RequestId parent, RequestId child);
  Status reorder(std::span<const RequestId> beams, std::span<const RequestId> sources);
  Status truncate(RequestId request, SlotCount length);
  Status shift(RequestId request, SlotRange gap);
  Status release(RequestId request);
  Status preempt_to_recompute(RequestId request);
  Status preempt_to_host(RequestId request);
  StatusOr<Handle> resume(RequestId request);
  StatusOr<PageCount> evict(PageCount pages);
  Status defrag();
  /// The request's tokens and bytes, with what is needed to check them.
  StatusOr<std::vector<std::byte>> save(RequestId request);
  /// `admission` names the new request; its side input and offset must be the saved one's. Refused,
  /// with nothing changed: bytes that are damaged, or of another model, format of the cache or
  /// scales of tensors and heads; scales of slots that are 0 or not finite, or of which a page has
  /// two.
  StatusOr<Handle> restore(const Admission& admission, std::span<const std::byte> bytes);

  void fail_allocation(uint64_t nth) { target_.cache.fail_allocation(nth); }

  /// The cache itself, to look at; has_draft() says whether there is a second one.
  bool has_draft() const { return draft_ != nullptr; }
  const PagedCache& cache(bool draft = false) const { return side(draft).cache; }
  /// Copies within the pool that the last operation ordered.
  std::span<const SlotCopy> last_copies(bool draft = false) const { return side(draft).copies; }
  /// Of one cache, oldest first, by the numbers that step() gave.
  std::vector<StepNumber> steps_in_flight(bool draft = false) const;
  Status read(const SlotPlace& place, const SlotBytes& out, bool draft = false);

 private:
  /// A cache and its memory.
  struct Side {
    PagedCache cache;
    std::unique_ptr<Store> store;
    std::vector<SlotCopy> copies;  // of the last operation
  };
  struct Flying {
    StepNumber number = {};  // the engine's
    StepNumber step = {};    // the cache's
    bool draft = false;
  };

  Engine(const EngineConfig& config, Model* model, Side target, std::unique_ptr<Side> draft);
  Side& side(bool draft) { return draft ? *draft_ : target_; }
  const Side& side(bool draft) const { return draft ? *draft_ : target_; }
  Status begin_operation();
  /// Slots of a request that are branches: [begin, begin + parents.size()).
  struct Tree {
    RequestId request = {};
    int64_t begin = 0;
    std::vector<int32_t> parents;  // among them; -1: the slot before; kGone: dropped
  };
  Status check_no_branches(const char* operation, RequestId request) const;
  Tree* tree_of(RequestId request);
  void cut_tree(RequestId request, SlotRange gap);
  Status broken(Status status);
  Status forget(RequestId request);
  Status copy(Side& side, std::span<const SlotCopy> copies);
  Status check_step(const EngineStep& step) const;
  Status check_tree(const EngineRow& row, bool draft) const;
  void keep_trees(const EngineStep& step);
  Batch make_batch(const EngineStep& step);
  void place_rows(const Side& side, const EngineStep& step);
  Status run(Side& side, const EngineStep& step, const Batch& batch);
  Status release_before(int32_t layer, const EngineStep& step);
  Status complete_oldest();

  EngineConfig config_;
  Model* model_;
  Side target_;
  std::unique_ptr<Side> draft_;
  Status failure_;
  std::vector<AppendRow> appends_;  // of the step that is being made
  std::vector<BatchRow> rows_;
  std::vector<Flying> flying_;  // oldest first
  std::vector<Tree> trees_;
  StepNumber launched_ = {};
};

}  // namespace kvattn
