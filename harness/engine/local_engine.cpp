#include "harness/engine/local_engine.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>

#include "harness/case/head_inputs.h"
#include "harness/core/check.h"
#include "harness/engine/engine_table.h"
#include "harness/run/shape.h"
#include "harness/run/tensor.h"

namespace kv {
namespace {

template <class T>
T sized() {
  T object = {};
  object.struct_bytes = sizeof object;
  return object;
}

// Printable, whatever the plugin left there.
std::string text_of(const kv_error& error) {
  std::string text(error.text, strnlen(error.text, sizeof error.text));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7E; }, '?');
  return text;
}

CallStatus status_of(kv_status status) {
  const auto value = static_cast<uint32_t>(status);
  return value <= static_cast<uint32_t>(CallStatus::kExhausted) ? static_cast<CallStatus>(value)
                                                                : CallStatus::kFailed;
}

kv_admission admission_of(const call::Admit& admit) {
  auto a = sized<kv_admission>();
  a.request = admit.request.value;
  a.owner = admit.owner;
  a.side_input = admit.side_input;
  a.tokens = admit.tokens.empty() ? nullptr : admit.tokens.data();
  a.histories = admit.histories.empty() ? nullptr : admit.histories.data();
  a.prompt_tokens = admit.tokens.size();
  a.slots_max = admit.slots_max;
  a.position_offset = admit.position_offset;
  return a;
}

void take(const kv_admitted& admitted, Answer& answer) {
  answer.handle = admitted.handle;
  answer.length = admitted.length;
  answer.draft_length = admitted.draft_length;
}

std::vector<uint32_t> numbers(const std::vector<RequestId>& ids) {
  std::vector<uint32_t> out;
  for (const RequestId id : ids) out.push_back(id.value);
  return out;
}

/// Of every query head of every layer, those of the draft model last; none when they are not used.
std::vector<float> head_values(const Case& c, bool is_used,
                               float (*value)(const Case&, HeadPlace)) {
  std::vector<float> values;
  const uint32_t layers = c.shape.layers + c.engine->draft_layers;
  for (uint32_t layer = 0; is_used && layer < layers; ++layer) {
    for (uint32_t head = 0; head < c.shape.query_heads; ++head) {
      values.push_back(value(c, {.layer = layer, .head = head}));
    }
  }
  return values;
}

}  // namespace

LocalEngine::LocalEngine(const kv_engine_level& level, const Case& c)
    : level_(level), case_(c), content_(c) {}

LocalEngine::~LocalEngine() {
  if (engine_ != nullptr) level_.destroy(engine_);
}

Result<std::unique_ptr<LocalEngine>> LocalEngine::create(const kv_engine_level& level,
                                                         const Case& c) {
  if (const std::string missing = find_missing(level, c); !missing.empty()) {
    return unsupported("engine: the plugin does not offer " + missing +
                       ", and what it holds cannot be judged without");
  }
  std::unique_ptr<LocalEngine> engine(new LocalEngine(level, c));
  const kv_attention_shape shape = plugin_shape(c);
  std::vector<kv_layer_group> groups;
  for (const CacheGroup& group : cache_groups(c)) {
    auto g = sized<kv_layer_group>();
    g.layers = group.layers;
    g.window_left = group.window_left;
    groups.push_back(g);
  }
  const EngineLevel& e = *c.engine;
  auto config = sized<kv_engine_config>();
  config.shape = &shape;
  config.groups = groups.data();
  config.group_count = static_cast<uint32_t>(groups.size());
  config.page_count = c.pool.page_count;
  config.host_page_count = e.host_page_count;
  config.batch_slots = e.batch_slots;
  config.request_max = e.request_max;
  config.context_limit = e.context_limit;
  config.step_tokens_max = e.step_tokens_max;
  config.async_depth = e.async_depth;
  config.overcommit = c.pool.overcommit;
  config.prefix_cache = e.prefix_cache ? 1 : 0;
  config.draft_layers = e.draft_layers;
  config.draft_page_count = e.draft_page_count;
  const std::vector<float> slopes = head_values(c, c.shape.alibi, alibi_slope);
  const std::vector<float> sinks = head_values(c, c.shape.sinks, sink_logit);
  config.alibi_slopes = slopes.empty() ? nullptr : slopes.data();
  config.sinks = sinks.empty() ? nullptr : sinks.data();
  config.harness = engine.get();
  if (engine->content_.has_scales()) config.fill_scales = &LocalEngine::fill_scales;
  config.fill_qkv = &LocalEngine::fill_qkv;
  auto error = sized<kv_error>();
  kv_status status = level.supports(&config, &error);
  if (status == KV_OK) status = level.create(&config, &engine->engine_, &error);
  if (status == KV_OK && engine->engine_ != nullptr) return engine;
  engine->engine_ = nullptr;
  const std::string what = "engine: " + text_of(error);
  // A configuration that it refuses is one that it does not offer.
  const bool declines = status == KV_UNSUPPORTED || status == KV_REFUSED;
  return declines ? unsupported(what) : environment_error(what);
}

kv_status LocalEngine::fill_qkv(void* harness, const kv_token* token, void* q, void* k, void* v) {
  auto& self = *static_cast<LocalEngine*>(harness);
  const uint64_t* previous = self.told_.previous_of(token->history);
  if (previous == nullptr) return KV_REFUSED;  // a token that nobody told it of
  const StoredToken stored{
      .history = token->history, .previous = *previous, .position = token->position};
  const ContentLayer layer{.layer = token->layer, .draft = token->draft != 0};
  const auto room = [](void* to, uint32_t bytes) {
    return std::span(static_cast<std::byte*>(to), bytes);
  };
  const Content& content = self.content_;
  if (q != nullptr) content.query(stored, layer, room(q, content.query_bytes()));
  if (k != nullptr) content.key(stored, layer, room(k, content.key_bytes()));
  if (v != nullptr) content.value(stored, layer, room(v, content.value_bytes()));
  return KV_OK;
}

kv_status LocalEngine::fill_scales(void* harness, const kv_token* token, float* key, float* value) {
  const auto& self = *static_cast<const LocalEngine*>(harness);
  const ContentLayer layer{.layer = token->layer, .draft = token->draft != 0};
  const uint32_t heads = self.case_.shape.kv_heads;
  self.content_.scales(token->history, layer, false, {key, heads});
  self.content_.scales(token->history, layer, true, {value, heads});
  return KV_OK;
}

bool LocalEngine::shift_turns() const {
  return level_.struct_bytes >= offsetof(kv_engine_level, shift_turns) + sizeof(uint32_t) &&
         level_.shift_turns != 0;
}

Answer LocalEngine::perform(const Call& call) {
  Answer answer;
  auto error = sized<kv_error>();
  const kv_status status =
      std::visit([&](const auto& c) { return call_engine(c, answer, error); }, call);
  answer.status = status_of(status);
  answer.message = text_of(error);
  return answer;
}

kv_status LocalEngine::call_engine(const call::Admit& admit, Answer& answer, kv_error& error) {
  const kv_admission admission = admission_of(admit);
  auto admitted = sized<kv_admitted>();
  const kv_status status = level_.admit(engine_, &admission, &admitted, &error);
  take(admitted, answer);
  return status;
}

kv_status LocalEngine::call_engine(const call::Step& step, Answer& answer, kv_error& error) {
  std::vector<kv_step_row> rows;
  told_.clear();
  for (const call::StepRow& r : step.rows) {
    told_.add(r.histories, r.previous);
    auto row = sized<kv_step_row>();
    row.request = r.request.value;
    row.handle = r.handle;
    row.length = r.length;
    row.append_tokens = r.append;
    row.query_tokens = step.wants_outputs ? r.queries : 0;
    row.speculative_tokens = r.speculative;
    row.dtype = dl_type(r.dtype);
    row.tokens = r.tokens.data();
    // Those of the appended tokens alone, unless earlier slots are queried, too.
    const size_t untold = step.wants_outputs ? 0 : r.histories.size() - r.append;
    row.histories = r.histories.data() + untold;
    row.tree_parents = r.tree_parents.empty() ? nullptr : r.tree_parents.data();
    row.cancel_before_layer = r.cancel_before_layer;
    rows.push_back(row);
  }
  auto call = sized<kv_step>();
  call.rows = rows.data();
  call.row_count = static_cast<uint32_t>(rows.size());
  call.draft = step.draft ? 1 : 0;
  call.layout = step.layout;
  if (!step.wants_outputs) return level_.step(engine_, &call, &answer.step, &error);
  StepOutputs room = room_for(step);
  std::vector<void*> outputs;
  std::vector<float*> lses;
  for (auto& layer : room.outputs) outputs.push_back(layer.data());
  for (auto& layer : room.lses) lses.push_back(layer.data());
  call.outputs = outputs.data();
  call.lses = lses.data();
  const kv_status status = level_.step(engine_, &call, &answer.step, &error);
  // It is written until the step has ended, and after a failure nobody knows until when.
  if (status == KV_OK || status == KV_FAILED) outputs_.emplace(answer.step, std::move(room));
  return status;
}

StepOutputs LocalEngine::room_for(const call::Step& step) const {
  const Shape& s = case_.shape;
  uint64_t queries = 0;
  for (const call::StepRow& row : step.rows) queries += row.queries;
  const uint64_t elements = queries * s.query_heads * s.head_dim_v;
  const uint32_t layers = step.draft ? case_.engine->draft_layers : s.layers;
  // All ones are NaN in every format: what is not written shows.
  const std::vector<std::byte> unwritten(elements * dtype_bytes(s.output_dtype), std::byte{0xFF});
  const std::vector<float> unset(queries * s.query_heads, std::numeric_limits<float>::quiet_NaN());
  return {.outputs = std::vector(layers, unwritten), .lses = std::vector(layers, unset)};
}

StepOutputs LocalEngine::take_outputs(uint64_t step) {
  const auto node = outputs_.extract(step);
  return node.empty() ? StepOutputs() : std::move(node.mapped());
}

kv_status LocalEngine::call_engine(const call::Complete& complete, Answer&, kv_error& error) {
  return level_.complete(engine_, complete.step, &error);
}

kv_status LocalEngine::call_engine(const call::Fork& fork, Answer& answer, kv_error& error) {
  auto admitted = sized<kv_admitted>();
  const kv_status status =
      level_.fork(engine_, fork.parent.value, fork.child.value, &admitted, &error);
  take(admitted, answer);
  return status;
}

kv_status LocalEngine::call_engine(const call::Reorder& reorder, Answer&, kv_error& error) {
  const auto beams = numbers(reorder.beams), sources = numbers(reorder.sources);
  return level_.reorder(engine_, beams.data(), sources.data(), static_cast<uint32_t>(beams.size()),
                        &error);
}

kv_status LocalEngine::call_engine(const call::Truncate& truncate, Answer&, kv_error& error) {
  return level_.truncate(engine_, truncate.request.value, truncate.length, &error);
}
kv_status LocalEngine::call_engine(const call::Shift& shift, Answer&, kv_error& error) {
  return level_.shift(engine_, shift.request.value, shift.begin, shift.end, &error);
}
kv_status LocalEngine::call_engine(const call::Cancel& cancel, Answer&, kv_error& error) {
  return level_.cancel(engine_, cancel.request.value, &error);
}
kv_status LocalEngine::call_engine(const call::Finish& finish, Answer&, kv_error& error) {
  return level_.finish(engine_, finish.request.value, &error);
}
kv_status LocalEngine::call_engine(const call::Preempt& preempt, Answer&, kv_error& error) {
  return level_.preempt(engine_, preempt.request.value,
                        preempt.swap ? KV_PREEMPT_SWAP : KV_PREEMPT_RECOMPUTE, &error);
}

kv_status LocalEngine::call_engine(const call::Resume& resume, Answer& answer, kv_error& error) {
  auto admitted = sized<kv_admitted>();
  const kv_status status = level_.resume(engine_, resume.request.value, &admitted, &error);
  take(admitted, answer);
  return status;
}

kv_status LocalEngine::call_engine(const call::Evict& evict, Answer& answer, kv_error& error) {
  return level_.evict(engine_, evict.pages, &answer.evicted, &error);
}
kv_status LocalEngine::call_engine(const call::Defrag&, Answer&, kv_error& error) {
  return level_.defrag(engine_, &error);
}

kv_status LocalEngine::call_engine(const call::Save& save, Answer& answer, kv_error& error) {
  uint64_t bytes = 0;
  kv_status status = level_.save(engine_, save.request.value, nullptr, &bytes, &error);
  if (status != KV_OK) return status;
  if (bytes > uint64_t{1} << 30) {  // a limit of ours, not the engine's
    std::snprintf(error.text, sizeof error.text, "kverify keeps at most 1 GiB of saved bytes");
    return KV_UNSUPPORTED;
  }
  answer.saved.resize(bytes);
  status = level_.save(engine_, save.request.value, answer.saved.data(), &bytes, &error);
  answer.saved.resize(std::min<uint64_t>(bytes, answer.saved.size()));
  return status;
}

kv_status LocalEngine::call_engine(const call::Restore& restore, Answer& answer, kv_error& error) {
  const kv_admission admission = admission_of(restore.admission);
  auto admitted = sized<kv_admitted>();
  const kv_status status = level_.restore(engine_, &admission, restore.bytes.data(),
                                          restore.bytes.size(), &admitted, &error);
  take(admitted, answer);
  return status;
}

kv_status LocalEngine::call_engine(const call::FailAllocation& fail, Answer&, kv_error& error) {
  return level_.fail_allocation(engine_, fail.nth, &error);
}

Result<EngineState> LocalEngine::snapshot(CacheKind cache) {
  auto snapshot = sized<kv_snapshot>();
  auto error = sized<kv_error>();
  const kv_status status =
      level_.snapshot(engine_, static_cast<uint32_t>(cache), &snapshot, &error);
  if (status != KV_OK) return bad_input("snapshot: " + text_of(error));
  return copy_snapshot(snapshot, known_[static_cast<size_t>(cache)]);
}

std::vector<SlotBytes> LocalEngine::read(CacheKind cache, std::span<const SlotPlace> places) {
  std::vector<SlotBytes> all(places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    // No more than the whole cache of one layer: what is asked for comes from the judge.
    const uint64_t most = uint64_t{case_.pool.page_slots} * case_.pool.page_count;
    if (places[i].slots > std::max<uint64_t>(most, case_.engine->context_limit)) {
      all[i].status = CallStatus::kRefused;
    } else {
      all[i] = read_place(static_cast<uint32_t>(cache), places[i]);
    }
  }
  return all;
}

SlotBytes LocalEngine::read_place(uint32_t cache, const SlotPlace& place) {
  const size_t key_bytes = content_.stored_key_bytes(), value_bytes = content_.stored_value_bytes();
  const size_t scales = content_.has_scales() ? case_.shape.kv_heads : 0;
  SlotBytes bytes;
  bytes.key.resize(place.slots * key_bytes);
  bytes.value.resize(place.slots * value_bytes);
  // What an engine does not say is no scale.
  bytes.key_scales.assign(place.slots * scales, std::numeric_limits<float>::quiet_NaN());
  bytes.value_scales = bytes.key_scales;
  const auto part = [&](uint32_t slot) {
    auto out = sized<kv_slot_bytes>();
    out.key = bytes.key.data() + slot * key_bytes;
    out.value = bytes.value.data() + slot * value_bytes;
    if (scales > 0) {
      out.key_scales = bytes.key_scales.data() + slot * scales;
      out.value_scales = bytes.value_scales.data() + slot * scales;
    }
    return out;
  };
  const bool at_once = place.by_page ? offers(level_, &kv_engine_level::read_page_slots)
                                     : offers(level_, &kv_engine_level::read_slots);
  const bool by_one = place.by_page ? offers(level_, &kv_engine_level::read_page)
                                    : offers(level_, &kv_engine_level::read_slot);
  kv_status status = KV_OK;
  if (at_once && (place.slots > 1 || !by_one)) {
    status = read_at_once(cache, place, part(0));
  } else {
    for (uint32_t i = 0; i < place.slots && status == KV_OK; ++i) {
      SlotPlace one = place;
      one.slot += i;
      status = read_one(cache, one, part(i));
    }
  }
  bytes.status = status_of(status);
  if (status != KV_OK) return {.status = bytes.status};
  return bytes;
}

kv_status LocalEngine::read_at_once(uint32_t cache, const SlotPlace& place,
                                    const kv_slot_bytes& out) {
  auto error = sized<kv_error>();
  if (place.by_page) {
    return level_.read_page_slots(engine_, cache, place.holder, static_cast<uint32_t>(place.slot),
                                  place.slots, place.layer, &out, &error);
  }
  return level_.read_slots(engine_, cache, place.holder, place.slot, place.slots, place.layer, &out,
                           &error);
}

kv_status LocalEngine::read_one(uint32_t cache, const SlotPlace& place, const kv_slot_bytes& out) {
  auto error = sized<kv_error>();
  if (place.by_page && offers(level_, &kv_engine_level::read_page)) {
    return level_.read_page(engine_, cache, place.holder, static_cast<uint32_t>(place.slot),
                            place.layer, &out, &error);
  }
  if (!place.by_page && offers(level_, &kv_engine_level::read_slot)) {
    return level_.read_slot(engine_, cache, place.holder, place.slot, place.layer, &out, &error);
  }
  return KV_UNSUPPORTED;
}

}  // namespace kv
