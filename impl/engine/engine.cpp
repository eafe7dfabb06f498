// Everything but steps and saved bytes: each operation takes the draft cache along.
#include "kvattn/engine.h"

#include <algorithm>

namespace kvattn {

PagedCacheConfig draft_cache_config(const EngineConfig& config) {
  PagedCacheConfig draft = config.cache;
  draft.groups = {{.layers = config.draft_layers, .window_left = -1}};
  draft.pages = config.draft_pages;
  draft.host_pages = PageCount(0);
  draft.prefix_index = false;
  draft.steps_in_flight_max = config.async_depth + 1;
  draft.overcommit = 1e6;  // the target's admission decides; a full draft pool refuses steps
  return draft;
}

namespace {

PagedCacheConfig target_cache_config(const EngineConfig& config) {
  PagedCacheConfig target = config.cache;
  target.steps_in_flight_max = config.async_depth + 1;
  return target;
}

}  // namespace

Status Engine::check_config(const EngineConfig& config) {
  if (std::ssize(config.cache.groups) > kGroupsMax) {
    return unsupported("engine: expected at most ", kGroupsMax, " groups of layers, got ",
                       config.cache.groups.size());
  }
  if (config.async_depth < 0 || config.async_depth >= kStepsInFlightMax) {
    return unsupported("engine: expected an asynchronous depth of 0 to ", kStepsInFlightMax - 1,
                       ", got ", config.async_depth);
  }
  KVATTN_RETURN_IF_ERROR(PagedCache::check_config(target_cache_config(config)));
  return config.draft_layers == 0 ? Status() : PagedCache::check_config(draft_cache_config(config));
}

StatusOr<std::unique_ptr<Engine>> Engine::create(const EngineConfig& config, EngineParts parts) {
  KVATTN_RETURN_IF_ERROR(check_config(config));
  StatusOr<PagedCache> target = PagedCache::create(target_cache_config(config));
  if (!target.ok()) return target.status();
  std::unique_ptr<Side> draft;
  if (config.draft_layers > 0) {
    StatusOr<PagedCache> cache = PagedCache::create(draft_cache_config(config));
    if (!cache.ok()) return cache.status();
    draft = std::make_unique<Side>(Side{*std::move(cache), std::move(parts.draft), {}});
  }
  return std::unique_ptr<Engine>(new Engine(
      config, parts.model, {*std::move(target), std::move(parts.target), {}}, std::move(draft)));
}

Engine::Engine(const EngineConfig& config, Model* model, Side target, std::unique_ptr<Side> draft)
    : config_(config), model_(model), target_(std::move(target)), draft_(std::move(draft)) {
  const int64_t pages =
      2 * pages_for(config.cache.context_limit, config.cache.page_slots).value + 2;
  for (Side* s : {&target_, draft_.get()}) {
    if (s == nullptr) continue;
    const PagedCacheConfig& c = s->cache.config();
    const int64_t groups = std::ssize(c.groups);
    s->copies.reserve(std::max({c.pages.value, pages * groups, c.batch_slots * groups}));
  }
  appends_.reserve(config.cache.batch_slots);
  rows_.reserve(config.cache.batch_slots);
  flying_.reserve(kStepsInFlightMax + 1);
}

// Outputs belong to the caller: nothing may write to them any more.
Engine::~Engine() {
  while (!flying_.empty() && failure_.ok()) {
    if (!complete_oldest().ok()) break;
  }
}

Status Engine::begin_operation() {
  target_.copies.clear();
  if (draft_) draft_->copies.clear();
  return failure_;
}

Status Engine::broken(Status status) {
  if (!status.ok()) failure_ = failed("engine: an earlier call failed: ", status.text());
  return status;
}

Status Engine::copy(Side& side, std::span<const SlotCopy> copies) {
  side.copies.assign(copies.begin(), copies.end());
  return broken(side.store->copy(copies));
}

// The draft cache is asked first: it takes no page for it and can be asked back without a trace.
StatusOr<Handle> Engine::admit(const Admission& admission) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  if (draft_) {
    Admission empty = admission;
    empty.prompt = {};
    StatusOr<Handle> draft = draft_->cache.admit(empty);
    if (!draft.ok()) return draft.status();
  }
  StatusOr<Handle> handle = target_.cache.admit(admission);
  if (!handle.ok() && draft_) {
    // Only this call's: a request of that id that existed before has made the draft refuse.
    static_cast<void>(draft_->cache.release(*draft_->cache.find(admission.request)));
  }
  return handle;
}

StatusOr<Handle> Engine::fork(RequestId parent, RequestId child) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  StatusOr<Handle> from = target_.cache.find(parent);
  if (!from.ok()) return from.status();
  KVATTN_RETURN_IF_ERROR(check_no_branches("fork", parent));
  StatusOr<Handle> handle = target_.cache.fork(*from, child);
  if (handle.ok() && draft_) {
    // Requests and batch slots of both caches are the same ones, so there is room here too.
    StatusOr<Handle> draft = draft_->cache.fork(*draft_->cache.find(parent), child);
    if (!draft.ok()) return broken(draft.status());
  }
  return handle;
}

Status Engine::reorder(std::span<const RequestId> beams, std::span<const RequestId> sources) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  for (const RequestId beam : beams) KVATTN_RETURN_IF_ERROR(check_no_branches("reorder", beam));
  KVATTN_RETURN_IF_ERROR(target_.cache.reorder(beams, sources));
  return draft_ ? broken(draft_->cache.reorder(beams, sources)) : Status();
}

Status Engine::truncate(RequestId request, SlotCount length) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  StatusOr<Handle> handle = target_.cache.find(request);
  if (!handle.ok()) return handle.status();
  KVATTN_RETURN_IF_ERROR(target_.cache.truncate(*handle, length));
  cut_tree(request, {length, handle->length});
  if (!draft_) return {};
  const Handle draft = *draft_->cache.find(request);
  return broken(draft_->cache.truncate(draft, std::min(length, draft.length)));
}

Status Engine::shift(RequestId request, SlotRange gap) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  StatusOr<Handle> handle = target_.cache.find(request);
  if (!handle.ok()) return handle.status();
  const int64_t page_slots = config_.cache.page_slots;
  if (config_.whole_page_shifts &&
      (gap.begin.value % page_slots != 0 || gap.end.value % page_slots != 0)) {
    return refused("shift: expected whole pages of ", page_slots, " slots, got slots ", gap.begin,
                   " to ", gap.end);
  }
  Handle draft;
  SlotRange draft_gap = gap;
  if (draft_) {
    draft = *draft_->cache.find(request);
    draft_gap.end = std::min(gap.end, draft.length);
  }
  const bool moves_draft = draft_ && draft_gap.begin < draft_gap.end;
  if (const Tree* tree = tree_of(request); tree != nullptr && gap.begin.value < tree->begin) {
    return check_no_branches("shift", request);
  }
  // The draft cache may lack pages when the target does not: it is asked before anything moves, and
  // after the target, for what is not lawful there is refused whatever room there is.
  if (moves_draft) {
    KVATTN_RETURN_IF_ERROR(target_.cache.check_shift(*handle, gap));
    KVATTN_RETURN_IF_ERROR(draft_->cache.check_shift(draft, draft_gap));
  }
  StatusOr<std::span<const SlotCopy>> copies = target_.cache.shift(*handle, gap);
  if (!copies.ok()) return copies.status();
  cut_tree(request, gap);
  KVATTN_RETURN_IF_ERROR(copy(target_, *copies));
  if (!moves_draft) return {};
  StatusOr<std::span<const SlotCopy>> moved = draft_->cache.shift(draft, draft_gap);
  return moved.ok() ? copy(*draft_, *moved) : broken(moved.status());
}

Status Engine::release(RequestId request) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  return forget(request);
}

Status Engine::forget(RequestId request) {
  StatusOr<Handle> handle = target_.cache.find(request);
  if (!handle.ok()) return handle.status();
  KVATTN_RETURN_IF_ERROR(target_.cache.release(*handle));
  std::erase_if(trees_, [request](const Tree& tree) { return tree.request == request; });
  return draft_ ? broken(draft_->cache.release(*draft_->cache.find(request))) : Status();
}

Status Engine::preempt_to_recompute(RequestId request) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  StatusOr<Handle> handle = target_.cache.find(request);
  if (!handle.ok()) return handle.status();
  KVATTN_RETURN_IF_ERROR(check_no_branches("preempt", request));
  KVATTN_RETURN_IF_ERROR(target_.cache.preempt_to_recompute(*handle));
  return draft_ ? broken(draft_->cache.preempt_to_recompute(*draft_->cache.find(request)))
                : Status();
}

// The draft cache is cheap to fill again: it is never swapped.
Status Engine::preempt_to_host(RequestId request) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  StatusOr<Handle> handle = target_.cache.find(request);
  if (!handle.ok()) return handle.status();
  KVATTN_RETURN_IF_ERROR(check_no_branches("preempt", request));
  StatusOr<std::span<const HostCopy>> copies = target_.cache.preempt_to_host(*handle);
  if (!copies.ok()) return copies.status();
  KVATTN_RETURN_IF_ERROR(broken(target_.store->to_host(*copies)));
  return draft_ ? broken(draft_->cache.preempt_to_recompute(*draft_->cache.find(request)))
                : Status();
}

StatusOr<Handle> Engine::resume(RequestId request) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  StatusOr<Handle> handle = target_.cache.find(request);
  if (!handle.ok()) return handle.status();
  StatusOr<Resumed> resumed = target_.cache.resume(*handle);
  if (!resumed.ok()) return resumed.status();
  if (!resumed->copies.empty()) {
    KVATTN_RETURN_IF_ERROR(broken(target_.store->from_host(resumed->copies)));
  }
  if (draft_) {
    StatusOr<Resumed> draft = draft_->cache.resume(*draft_->cache.find(request));
    if (!draft.ok()) return broken(draft.status());
  }
  return resumed->handle;
}

StatusOr<PageCount> Engine::evict(PageCount pages) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  return target_.cache.evict(pages);
}

Status Engine::defrag() {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  if (!flying_.empty()) {
    return refused("defrag: expected no step in flight, got ", flying_.size());
  }
  for (Side* s : {&target_, draft_.get()}) {
    if (s == nullptr) continue;
    StatusOr<std::span<const SlotCopy>> copies = s->cache.defrag();
    if (!copies.ok()) return broken(copies.status());
    KVATTN_RETURN_IF_ERROR(copy(*s, *copies));
  }
  return {};
}

Status Engine::read(const SlotPlace& place, const SlotBytes& out, bool draft) {
  KVATTN_RETURN_IF_ERROR(failure_);
  return broken(side(draft).store->read(place, out));
}

}  // namespace kvattn
