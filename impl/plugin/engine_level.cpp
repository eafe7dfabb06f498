// The engine level: structs in, structs out. Everything that matters happens in kvattn/engine.h.
#include "impl/plugin/engine_level.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "impl/plugin/dlpack.h"
#include "impl/plugin/engine_config.h"

struct kv_engine {
  kvattn::StubModel model;
  kvattn::SlotLayout layout;
  std::unique_ptr<kvattn::Engine> engine;
  kvattn::SnapshotArrays snapshot = {};
};

namespace kvattn {
namespace {

/// Numbers beyond every limit of ours stay beyond it.
SlotCount slots_of(uint64_t slots) {
  return SlotCount(static_cast<int64_t>(std::min<uint64_t>(slots, uint64_t{1} << 40)));
}
std::span<const Token> tokens_of(const uint64_t* tokens, uint64_t count) {
  static_assert(sizeof(Token) == sizeof(uint64_t));
  return {reinterpret_cast<const Token*>(tokens), count};
}

template <class Struct>
Status check_struct(const char* name, const Struct* s) {
  if (s == nullptr || s->struct_bytes < sizeof *s) {
    return refused(name, ": expected a struct of ", sizeof *s, " bytes or more");
  }
  return {};
}

void describe(const kv_engine& e, const Handle& handle, kv_admitted* out) {
  out->handle = index_of(handle.ticket);
  out->length = static_cast<uint64_t>(handle.length.value);
  out->draft_length = 0;
  if (e.engine->has_draft()) {
    const StatusOr<Handle> draft = e.engine->cache(true).find(handle.request);
    if (draft.ok()) out->draft_length = static_cast<uint64_t>(draft->length.value);
  }
}

/// Answers a call that yields a request.
kv_status admitted(const kv_engine& e, const StatusOr<Handle>& handle, kv_admitted* out,
                   kv_error* why) {
  if (handle.ok()) describe(e, *handle, out);
  return answer(handle.status(), why);
}

Admission admission_of(const kv_admission& a, bool with_prompt) {
  return {.request = RequestId{a.request},
          .owner = Owner{a.owner},
          .side_input = SideInput{a.side_input},
          .prompt = with_prompt ? tokens_of(a.tokens, a.prompt_tokens) : std::span<const Token>(),
          .slots_max = slots_of(a.slots_max),
          .position_offset = a.position_offset};
}

kv_status supports(const kv_engine_config* config, kv_error* why) {
  Status status = check_struct("config", config);
  if (status.ok()) status = engine_config(*config).status();
  return answer(status, why);
}

kv_status create(const kv_engine_config* config, kv_engine** out, kv_error* why) try {
  if (Status status = check_struct("config", config); !status.ok()) return answer(status, why);
  StatusOr<ParsedConfig> parsed = engine_config(*config);
  if (!parsed.ok()) return answer(parsed.status(), why);
  const SlotLayout layout = layout_of(parsed->shape);
  auto made = std::unique_ptr<kv_engine>(
      new kv_engine{.model = StubModel(*config, layout), .layout = layout});
  EngineParts parts{.model = &made->model};
  StatusOr<std::unique_ptr<Store>> target = make_store(*config, *parsed, false);
  if (!target.ok()) return answer(target.status(), why);
  parts.target = *std::move(target);
  if (config->draft_layers > 0) {
    StatusOr<std::unique_ptr<Store>> draft = make_store(*config, *parsed, true);
    if (!draft.ok()) return answer(draft.status(), why);
    parts.draft = *std::move(draft);
  }
  StatusOr<std::unique_ptr<Engine>> engine = Engine::create(parsed->engine, std::move(parts));
  if (!engine.ok()) return answer(engine.status(), why);
  made->engine = *std::move(engine);
  *out = made.release();
  return KV_OK;
} catch (const std::bad_alloc&) {
  return answer(failed("engine: host memory is exhausted"), why);
}

void destroy(kv_engine* e) { delete e; }

kv_status admit(kv_engine* e, const kv_admission* a, kv_admitted* out, kv_error* why) {
  if (Status status = check_struct("admission", a); !status.ok()) return answer(status, why);
  return admitted(*e, e->engine->admit(admission_of(*a, true)), out, why);
}

StatusOr<EngineRow> row_of(const PagedCache& cache, const kv_step_row& r) {
  KVATTN_RETURN_IF_ERROR(check_struct("row", &r));
  const StatusOr<Handle> own = cache.find(RequestId{r.request});
  if (!own.ok()) return own.status();
  Handle handle = *own;
  handle.ticket = Ticket{r.handle};
  handle.length = slots_of(r.length);
  const StatusOr<DType> dtype = dtype_of("K and V", r.dtype);
  if (!dtype.ok()) return refused("step: request ", r.request, ": ", dtype.status().text());
  bool is_tree = false;
  for (uint32_t i = 0; r.tree_parents != nullptr && i < r.append_tokens; ++i) {
    is_tree |= r.tree_parents[i] != static_cast<int32_t>(i) - 1;
  }
  return EngineRow{.append = {.handle = handle,
                              .tokens = tokens_of(r.tokens, r.append_tokens),
                              .speculative = SlotCount(r.speculative_tokens),
                              .dtype = *dtype},
                   .queries = r.query_tokens,
                   .tree_parents = is_tree ? std::span(r.tree_parents, r.append_tokens)
                                           : std::span<const int32_t>(),
                   .release_before_layer =
                       static_cast<int32_t>(std::min<uint32_t>(r.cancel_before_layer, 0x7fffffff))};
}

/// The draft cache has tickets of its own: what the caller holds is the target's.
Status to_draft(const Engine& engine, const kv_step_row& asked, EngineRow& row) {
  const StatusOr<Handle> target = engine.cache().find(RequestId{asked.request});
  if (!target.ok()) return target.status();
  if (index_of(target->ticket) != asked.handle) {
    return refused("step: request ", asked.request, ": expected handle ", index_of(target->ticket),
                   ", got ", asked.handle);
  }
  row.append.handle.ticket = engine.cache(true).find(RequestId{asked.request})->ticket;
  return {};
}

Status run_step(kv_engine* e, const kv_step& step, uint64_t* number) {
  if (step.layout > KV_LAYOUT_PAD_RIGHT) {
    return refused("step: expected layout 0, 1 or 2, got ", step.layout);
  }
  if (step.draft != 0 && !e->engine->has_draft()) return refused("step: there is no draft model");
  std::vector<EngineRow> rows;
  for (uint32_t i = 0; i < step.row_count; ++i) {
    StatusOr<EngineRow> row = row_of(e->engine->cache(step.draft != 0), step.rows[i]);
    if (!row.ok()) return row.status();
    if (step.draft != 0) KVATTN_RETURN_IF_ERROR(to_draft(*e->engine, step.rows[i], *row));
    rows.push_back(*row);
  }
  std::vector<LayerResult> results;
  if (step.outputs != nullptr) {
    int32_t layers = 0;
    for (const LayerGroup& g : e->engine->cache(step.draft != 0).config().groups) {
      layers += g.layers;
    }
    for (int32_t i = 0; i < layers; ++i) results.push_back({step.outputs[i], step.lses[i]});
  }
  e->model.begin(&step);
  StatusOr<StepNumber> launched = e->engine->step({.rows = rows,
                                                   .draft = step.draft != 0,
                                                   .layout = static_cast<BatchLayout>(step.layout),
                                                   .results = results});
  if (launched.ok()) *number = index_of(*launched);
  return launched.status();
}

kv_status step(kv_engine* e, const kv_step* s, uint64_t* number, kv_error* why) {
  if (Status status = check_struct("step", s); !status.ok()) return answer(status, why);
  return answer(run_step(e, *s, number), why);
}

kv_status complete(kv_engine* e, uint64_t step, kv_error* why) {
  return answer(e->engine->complete(StepNumber{step}), why);
}

kv_status fork(kv_engine* e, uint32_t parent, uint32_t child, kv_admitted* out, kv_error* why) {
  return admitted(*e, e->engine->fork(RequestId{parent}, RequestId{child}), out, why);
}

kv_status reorder(kv_engine* e, const uint32_t* beams, const uint32_t* sources, uint32_t count,
                  kv_error* why) {
  std::vector<RequestId> b, s;
  for (uint32_t i = 0; i < count; ++i) {
    b.push_back(RequestId{beams[i]});
    s.push_back(RequestId{sources[i]});
  }
  return answer(e->engine->reorder(b, s), why);
}

kv_status truncate(kv_engine* e, uint32_t request, uint64_t length, kv_error* why) {
  return answer(e->engine->truncate(RequestId{request}, slots_of(length)), why);
}

kv_status shift(kv_engine* e, uint32_t request, uint64_t begin, uint64_t end, kv_error* why) {
  return answer(e->engine->shift(RequestId{request}, {slots_of(begin), slots_of(end)}), why);
}

kv_status cancel(kv_engine* e, uint32_t request, kv_error* why) {
  return answer(e->engine->release(RequestId{request}), why);
}

kv_status finish(kv_engine* e, uint32_t request, kv_error* why) {
  const StatusOr<Handle> handle = e->engine->cache().find(RequestId{request});
  if (handle.ok() && e->engine->cache().state(*handle) != RequestState::kActive) {
    return answer(refused("finish: request ", request, " is preempted; expected an active one"),
                  why);
  }
  return cancel(e, request, why);
}

kv_status preempt(kv_engine* e, uint32_t request, uint32_t mode, kv_error* why) {
  switch (mode) {
    case KV_PREEMPT_RECOMPUTE:
      return answer(e->engine->preempt_to_recompute(RequestId{request}), why);
    case KV_PREEMPT_SWAP:
      return answer(e->engine->preempt_to_host(RequestId{request}), why);
    default:
      return answer(refused("preempt: expected mode 0 or 1, got ", mode), why);
  }
}

kv_status resume(kv_engine* e, uint32_t request, kv_admitted* out, kv_error* why) {
  return admitted(*e, e->engine->resume(RequestId{request}), out, why);
}

kv_status evict(kv_engine* e, uint32_t pages, uint32_t* evicted, kv_error* why) {
  const StatusOr<PageCount> done = e->engine->evict(PageCount(pages));
  if (done.ok()) *evicted = static_cast<uint32_t>(done->value);
  return answer(done.status(), why);
}

kv_status defrag(kv_engine* e, kv_error* why) { return answer(e->engine->defrag(), why); }

kv_status save(kv_engine* e, uint32_t request, void* bytes, uint64_t* byte_count, kv_error* why) {
  const StatusOr<std::vector<std::byte>> saved = e->engine->save(RequestId{request});
  if (!saved.ok()) return answer(saved.status(), why);
  if (bytes != nullptr) {
    if (*byte_count < saved->size()) {
      return answer(refused("save: expected room for ", saved->size(), " bytes, got ", *byte_count),
                    why);
    }
    std::ranges::copy(*saved, static_cast<std::byte*>(bytes));
  }
  *byte_count = saved->size();
  return KV_OK;
}

kv_status restore(kv_engine* e, const kv_admission* a, const void* bytes, uint64_t byte_count,
                  kv_admitted* out, kv_error* why) {
  if (Status status = check_struct("admission", a); !status.ok()) return answer(status, why);
  const std::span<const std::byte> saved(static_cast<const std::byte*>(bytes), byte_count);
  return admitted(*e, e->engine->restore(admission_of(*a, false), saved), out, why);
}

kv_status fail_allocation(kv_engine* e, uint64_t nth, kv_error*) {
  e->engine->fail_allocation(nth);
  return KV_OK;
}

Status check_cache(const kv_engine& e, uint32_t cache) {
  if (cache == KV_CACHE_TARGET || (cache == KV_CACHE_DRAFT && e.engine->has_draft())) return {};
  return refused("cache: expected 0, or 1 with a draft model, got ", cache);
}

kv_status snapshot(kv_engine* e, uint32_t cache, kv_snapshot* out, kv_error* why) {
  if (Status status = check_cache(*e, cache); !status.ok()) return answer(status, why);
  const bool draft = cache == KV_CACHE_DRAFT;
  const PagedCache& c = e->engine->cache(draft);
  CacheSnapshot now = c.snapshot();
  now.steps_in_flight = e->engine->steps_in_flight(draft);
  *out = e->snapshot.fill(std::move(now), c, e->engine->last_copies(draft));
  return KV_OK;
}

Status read_at(kv_engine& e, uint32_t cache, const SlotPlace& place, const kv_slot_bytes* out) {
  KVATTN_RETURN_IF_ERROR(check_struct("slot bytes", out));
  SlotBytes bytes{.key = out->key, .value = out->value};
  if (e.layout.scales > 0) {
    bytes.key_scales = out->key_scales, bytes.value_scales = out->value_scales;
  }
  return e.engine->read(place, bytes, cache == KV_CACHE_DRAFT);
}

StatusOr<Group> group_of(const PagedCacheConfig& c, uint32_t layer) {
  uint32_t end = 0;
  for (int32_t g = 0; g < std::ssize(c.groups); ++g) {
    end += static_cast<uint32_t>(c.groups[g].layers);
    if (layer < end) return Group{g};
  }
  return refused("read: expected a layer below ", end, ", got ", layer);
}

/// Consecutive slots of a request: of as many pages as they lie in.
Status read_range(kv_engine& e, uint32_t cache, RequestId request, uint64_t first, uint32_t slots,
                  uint32_t layer, const kv_slot_bytes* out) {
  KVATTN_RETURN_IF_ERROR(check_cache(e, cache));
  const PagedCache& c = e.engine->cache(cache == KV_CACHE_DRAFT);
  const StatusOr<Handle> handle = c.find(request);
  const StatusOr<Group> group = group_of(c.config(), layer);
  if (!handle.ok() || !group.ok()) return handle.ok() ? group.status() : handle.status();
  const SlotCount begin = slots_of(first), end(begin.value + slots);
  if (c.state(*handle) != RequestState::kActive || end > handle->length ||
      begin < c.kept_from(*handle, *group)) {
    return refused("read: request ", index_of(request), " does not hold ", slots,
                   " slots from slot ", first, " on");
  }
  KVATTN_RETURN_IF_ERROR(check_struct("slot bytes", out));
  const int64_t page_slots = c.config().page_slots;
  kv_slot_bytes rest = *out;
  for (int64_t at = begin.value; at < end.value;) {
    const int64_t count = std::min(end.value - at, page_slots - at % page_slots);
    KVATTN_RETURN_IF_ERROR(read_at(e, cache,
                                   {.page = c.table(*handle, *group)[at / page_slots],
                                    .slot = at % page_slots,
                                    .layer = static_cast<int32_t>(layer),
                                    .slots = count},
                                   &rest));
    rest.key = static_cast<std::byte*>(rest.key) + count * e.layout.stored_key;
    rest.value = static_cast<std::byte*>(rest.value) + count * e.layout.stored_value;
    if (rest.key_scales != nullptr) rest.key_scales += count * e.layout.scales;
    if (rest.value_scales != nullptr) rest.value_scales += count * e.layout.scales;
    at += count;
  }
  return {};
}

kv_status read_slots(kv_engine* e, uint32_t cache, uint32_t request, uint64_t first, uint32_t slots,
                     uint32_t layer, const kv_slot_bytes* out, kv_error* why) {
  return answer(read_range(*e, cache, RequestId{request}, first, slots, layer, out), why);
}
kv_status read_slot(kv_engine* e, uint32_t cache, uint32_t request, uint64_t slot, uint32_t layer,
                    const kv_slot_bytes* out, kv_error* why) {
  return read_slots(e, cache, request, slot, 1, layer, out, why);
}

kv_status read_page_slots(kv_engine* e, uint32_t cache, uint32_t page, uint32_t first,
                          uint32_t slots, uint32_t layer, const kv_slot_bytes* out, kv_error* why) {
  if (Status status = check_cache(*e, cache); !status.ok()) return answer(status, why);
  const PagedCacheConfig& c = e->engine->cache(cache == KV_CACHE_DRAFT).config();
  const StatusOr<Group> group = group_of(c, layer);
  if (!group.ok()) return answer(group.status(), why);
  if (page >= c.pages.value || uint64_t{first} + slots > static_cast<uint64_t>(c.page_slots)) {
    return answer(refused("read: expected a page below ", c.pages, " and slots below ",
                          c.page_slots, ", got ", page, " and ", slots, " from ", first, " on"),
                  why);
  }
  return answer(read_at(*e, cache,
                        {.page = static_cast<Page>(page),
                         .slot = first,
                         .layer = static_cast<int32_t>(layer),
                         .slots = slots},
                        out),
                why);
}
kv_status read_page(kv_engine* e, uint32_t cache, uint32_t page, uint32_t page_slot, uint32_t layer,
                    const kv_slot_bytes* out, kv_error* why) {
  return read_page_slots(e, cache, page, page_slot, 1, layer, out, why);
}

}  // namespace

const kv_engine_level& engine_level() {
  static constexpr kv_engine_level kLevel = {.struct_bytes = sizeof(kv_engine_level),
                                             .supports = supports,
                                             .create = create,
                                             .destroy = destroy,
                                             .admit = admit,
                                             .step = step,
                                             .complete = complete,
                                             .fork = fork,
                                             .reorder = reorder,
                                             .truncate = truncate,
                                             .shift = shift,
                                             .cancel = cancel,
                                             .finish = finish,
                                             .preempt = preempt,
                                             .resume = resume,
                                             .evict = evict,
                                             .defrag = defrag,
                                             .save = save,
                                             .restore = restore,
                                             .fail_allocation = fail_allocation,
                                             .snapshot = snapshot,
                                             .read_slot = read_slot,
                                             .read_page = read_page,
                                             .read_slots = read_slots,
                                             .read_page_slots = read_page_slots};
  return kLevel;
}

}  // namespace kvattn
