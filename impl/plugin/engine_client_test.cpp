#include "impl/plugin/engine_client_test.h"

#include <dlfcn.h>

#include <cstring>

namespace kvattn::testing {
namespace {

uint64_t mix(uint64_t x, uint64_t y) {
  x = (x ^ y) * 0xbf58476d1ce4e5b9u;
  return (x ^ (x >> 29)) * 0x94d049bb133111ebu + 1;
}

}  // namespace

const kv_plugin& load_plugin(const std::string& file) {
  void* library = dlopen((KV_BUILD_DIR "/lib/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return *reinterpret_cast<const kv_plugin* (*)()>(dlsym(library, "kverify_plugin_v1"))();
}

Client::Client(const kv_plugin& plugin, const ClientOptions& o)
    : api_(*plugin.engine),
      attends_(plugin.kernel != nullptr),
      draft_layers_(o.draft_layers),
      windows_(o.windows) {
  constexpr DLDataType kFloat = {kDLFloat, 32, 1};
  kv_attention_shape shape = {};
  shape.struct_bytes = sizeof shape;
  shape.query_heads = kQueryHeads;
  shape.kv_heads = kKvHeads;
  shape.head_dim_k = shape.head_dim_v = kHeadDim;
  shape.page_slots = 4;
  shape.query_dtype = shape.kv_dtype = shape.output_dtype = kFloat;
  shape.scale = kScale;
  shape.causal = KV_CAUSAL_BOTTOM_RIGHT;
  shape.window_left = shape.window_right = -1;
  std::vector<kv_layer_group> groups;
  for (int64_t window : windows_) groups.push_back({sizeof(kv_layer_group), 2, window});
  kv_engine_config config = {.struct_bytes = sizeof config,
                             .shape = &shape,
                             .groups = groups.data(),
                             .group_count = static_cast<uint32_t>(groups.size()),
                             .page_count = o.pages,
                             .host_page_count = o.host_pages,
                             .batch_slots = 4,
                             .request_max = 8,
                             .context_limit = 64,
                             .step_tokens_max = 24,
                             .async_depth = o.async_depth,
                             .overcommit = o.overcommit,
                             .prefix_cache = 1,
                             .draft_layers = o.draft_layers,
                             .draft_page_count = 32,
                             .harness = this,
                             .fill_qkv = fill};
  const kv_status can = api_.supports(&config, &why);
  if (can == KV_OK) api_.create(&config, &engine_, &why);
  if (engine_ == nullptr) throw std::runtime_error(why.text);
}

float Client::element(const Slot& slot, uint32_t layer, bool draft, uint32_t role, uint32_t i) {
  uint64_t x = slot.history;
  for (uint64_t part : {static_cast<uint64_t>(slot.position), uint64_t{layer}, uint64_t{draft},
                        uint64_t{role}, uint64_t{i}}) {
    x = mix(x, part);
  }
  return static_cast<float>(static_cast<int64_t>(x >> 57) - 64) / 64;
}

kv_status Client::fill(void*, const kv_token* t, void* q, void* k, void* v) {
  const Slot slot = {0, t->history, t->position};
  const uint32_t counts[] = {kQueryHeads * kHeadDim, kKvHeads * kHeadDim, kKvHeads * kHeadDim};
  void* const outs[] = {q, k, v};
  for (uint32_t role = 0; role < 3; ++role) {
    for (uint32_t i = 0; outs[role] != nullptr && i < counts[role]; ++i) {
      static_cast<float*>(outs[role])[i] = element(slot, t->layer, t->draft != 0, role, i);
    }
  }
  return KV_OK;
}

Client::Slot Client::next_slot(const std::vector<Slot>& before, uint64_t side_input,
                               uint64_t token) const {
  const uint64_t history = before.empty() ? mix(7, side_input) : before.back().history;
  const int64_t position = static_cast<int64_t>(before.size());
  return {token, mix(history, token), position};
}

uint64_t Client::admit(uint32_t id, uint32_t shared, uint64_t side_input) {
  Request r{.side_input = side_input};
  std::vector<uint64_t> tokens, histories;
  for (uint32_t i = 0; i < shared; ++i) {
    r.prompt.push_back(next_slot(r.prompt, side_input, i + 1));
    tokens.push_back(i + 1);
    histories.push_back(r.prompt.back().history);
  }
  const kv_admission a = {.struct_bytes = sizeof a,
                          .request = id,
                          .side_input = side_input,
                          .tokens = tokens.data(),
                          .histories = histories.data(),
                          .prompt_tokens = shared,
                          .slots_max = 64};
  kv_admitted got = {.struct_bytes = sizeof got};
  ok(api_.admit(engine_, &a, &got, &why));
  r.handle = got.handle;
  r.slots.assign(r.prompt.begin(), r.prompt.begin() + static_cast<int64_t>(got.length));
  requests_[id] = r;
  return got.length;
}

void Client::step(const std::vector<ClientRow>& rows, const ClientStep& how) {
  std::vector<kv_step_row> asked;
  std::vector<std::vector<uint64_t>> keep;
  for (const ClientRow& row : rows) {
    Request& r = requests_.at(row.request);
    std::vector<Slot>& slots = how.draft ? r.draft : r.slots;
    const uint64_t length = slots.size();
    for (uint32_t i = 0; i < row.append; ++i) {
      const uint64_t token =
          slots.size() < r.prompt.size() ? r.prompt[slots.size()].token : ++made_up_;
      slots.push_back(next_slot(slots, r.side_input, token));
    }
    std::vector<uint64_t> tokens, histories;
    for (uint64_t i = length; i < slots.size(); ++i) tokens.push_back(slots[i].token);
    for (uint64_t n = std::max(row.append, row.queries); n > 0; --n) {
      histories.push_back(slots[slots.size() - n].history);
    }
    keep.push_back(std::move(tokens));
    keep.push_back(std::move(histories));
    asked.push_back({.struct_bytes = sizeof(kv_step_row),
                     .request = row.request,
                     .handle = r.handle,
                     .length = length,
                     .append_tokens = row.append,
                     .query_tokens = row.queries,
                     .speculative_tokens = row.speculative,
                     .dtype = {kDLFloat, 32, 1}});
  }
  for (size_t i = 0; i < asked.size(); ++i) {
    asked[i].tokens = keep[2 * i].data();
    asked[i].histories = keep[2 * i + 1].data();
  }
  ok(try_step(asked, how));
}

kv_status Client::try_step(const std::vector<kv_step_row>& rows, const ClientStep& how) {
  auto out = std::make_unique<Output>();
  out->draft = how.draft;
  for (const kv_step_row& row : rows) {
    if (!requests_.contains(row.request)) continue;
    const Request& r = requests_.at(row.request);
    const std::vector<Slot>& slots = how.draft ? r.draft : r.slots;
    for (auto q = std::min<size_t>(row.query_tokens, slots.size()); q > 0; --q) {
      out->seen.emplace_back(slots.begin(), slots.end() - static_cast<int64_t>(q - 1));
    }
  }
  std::vector<void*> outputs;
  std::vector<float*> lses;
  out->output.resize(layers(how.draft));
  out->lse.resize(layers(how.draft));
  for (uint32_t l = 0; l < layers(how.draft); ++l) {
    out->output[l].resize(out->seen.size() * kQueryHeads * kHeadDim, NAN);
    out->lse[l].resize(out->seen.size() * kQueryHeads, NAN);
    outputs.push_back(out->output[l].data());
    lses.push_back(out->lse[l].data());
  }
  const kv_step s = {.struct_bytes = sizeof s,
                     .rows = rows.data(),
                     .row_count = static_cast<uint32_t>(rows.size()),
                     .draft = how.draft,
                     .layout = how.layout,
                     .outputs = attends_ ? outputs.data() : nullptr,
                     .lses = attends_ ? lses.data() : nullptr};
  uint64_t number = 0;
  const kv_status status = api_.step(engine_, &s, &number, &why);
  if (status == KV_OK) flying_[number] = std::move(out);
  return status;
}

void Client::fork(uint32_t parent, uint32_t child) {
  kv_admitted got = {.struct_bytes = sizeof got};
  ok(api_.fork(engine_, parent, child, &got, &why));
  requests_[child] = requests_.at(parent);
  requests_[child].handle = got.handle;
  requests_[child].prompt.clear();
  EXPECT_EQ(got.length, length(child));
}

void Client::reorder(std::vector<uint32_t> beams, std::vector<uint32_t> sources) {
  ok(api_.reorder(engine_, beams.data(), sources.data(), static_cast<uint32_t>(beams.size()),
                  &why));
  const auto before = requests_;
  for (size_t i = 0; i < beams.size(); ++i) {
    requests_[beams[i]] = before.at(sources[i]);
    requests_[beams[i]].handle = before.at(beams[i]).handle;
  }
}

void Client::truncate(uint32_t id, uint64_t length) {
  ok(api_.truncate(engine_, id, length, &why));
  Request& r = requests_.at(id);
  r.slots.resize(length);
  r.draft.resize(std::min(r.draft.size(), length));
}

void Client::shift(uint32_t id, uint64_t begin, uint64_t end) {
  ok(api_.shift(engine_, id, begin, end, &why));
  Request& r = requests_.at(id);
  r.prompt.clear();
  for (std::vector<Slot>* slots : {&r.slots, &r.draft}) {
    const auto from = static_cast<int64_t>(std::min(begin, slots->size()));
    const auto to = static_cast<int64_t>(std::min(end, slots->size()));
    slots->erase(slots->begin() + from, slots->begin() + to);
  }
}

void Client::cancel(uint32_t id) {
  ok(api_.cancel(engine_, id, &why));
  requests_.erase(id);
}

void Client::preempt(uint32_t id, bool swap) {
  ok(api_.preempt(engine_, id, swap ? KV_PREEMPT_SWAP : KV_PREEMPT_RECOMPUTE, &why));
}

void Client::resume(uint32_t id) {
  kv_admitted got = {.struct_bytes = sizeof got};
  ok(api_.resume(engine_, id, &got, &why));
  Request& r = requests_.at(id);
  r.prompt = r.slots;
  r.slots.resize(got.length);
  r.draft.resize(got.draft_length);
}

std::vector<std::byte> Client::save(uint32_t id) {
  uint64_t count = 0;
  ok(api_.save(engine_, id, nullptr, &count, &why));
  std::vector<std::byte> bytes(count);
  ok(api_.save(engine_, id, bytes.data(), &count, &why));
  return bytes;
}

kv_status Client::try_restore(uint32_t id, const std::vector<std::byte>& bytes, uint32_t like) {
  const kv_admission a = {.struct_bytes = sizeof a,
                          .request = id,
                          .side_input = requests_.at(like).side_input,
                          .slots_max = 64};
  kv_admitted got = {.struct_bytes = sizeof got};
  const kv_status status = api_.restore(engine_, &a, bytes.data(), bytes.size(), &got, &why);
  if (status != KV_OK) return status;
  requests_[id] = requests_.at(like);
  requests_[id].handle = got.handle;
  requests_[id].draft.clear();
  return status;
}

kv_snapshot Client::snapshot(bool draft) {
  kv_snapshot s = {};
  s.struct_bytes = sizeof s;
  ok(api_.snapshot(engine_, draft ? KV_CACHE_DRAFT : KV_CACHE_TARGET, &s, &why));
  return s;
}

// What is in flight in one cache is complete when the engine says so; the newest may be waited for.
void Client::complete_all() {
  if (flying_.empty()) return;
  api_.complete(engine_, flying_.rbegin()->first, &why);  // refused when nothing is in flight
  for (const auto& [number, out] : flying_) {
    if (attends_) check_output(*out);
  }
  flying_.clear();
}

void Client::check() {
  complete_all();
  check_cache(false);
  if (draft_layers_ > 0) check_cache(true);
}

void Client::check_cache(bool draft) {
  constexpr uint32_t kElements = kKvHeads * kHeadDim;
  std::vector<uint32_t> active;
  const kv_snapshot s = snapshot(draft);
  for (uint32_t i = 0; i < s.request_count; ++i) {
    if (s.requests[i].state == KV_REQUEST_ACTIVE) active.push_back(s.requests[i].request);
  }
  for (uint32_t id : active) {
    const std::vector<Slot>& slots = draft ? requests_.at(id).draft : requests_.at(id).slots;
    for (uint32_t layer = 0; layer < layers(draft); ++layer) {
      for (size_t slot = 0; slot < slots.size(); ++slot) {
        float key[kElements], value[kElements];
        const kv_slot_bytes bytes = {sizeof bytes, key, value};
        const kv_status status = api_.read_slot(engine_, draft, id, slot, layer, &bytes, &why);
        const int64_t window = draft ? -1 : windows_[layer / 2];
        const bool may_be_gone = window >= 0 && static_cast<int64_t>(slots.size()) >
                                                    static_cast<int64_t>(slot) + window + 1;
        if (status == KV_REFUSED && may_be_gone) continue;
        ASSERT_EQ(status, KV_OK) << why.text;
        for (uint32_t e = 0; e < kElements; ++e) {
          ASSERT_EQ(key[e], element(slots[slot], layer, draft, 1, e))
              << "request " << id << ", layer " << layer << ", slot " << slot;
          ASSERT_EQ(value[e], element(slots[slot], layer, draft, 2, e));
        }
      }
    }
  }
}

void Client::check_output(const Output& out) {
  for (uint32_t layer = 0; layer < layers(out.draft); ++layer) {
    for (size_t query = 0; query < out.seen.size(); ++query) {
      for (uint32_t head = 0; head < kQueryHeads; ++head) check_query(out, query, layer, head);
    }
  }
}

void Client::check_query(const Output& out, size_t query, uint32_t layer, uint32_t head) {
  const std::vector<Slot>& seen = out.seen[query];
  const int64_t window = out.draft ? -1 : windows_[layer / 2];
  const int64_t first =
      window < 0 ? 0 : std::max<int64_t>(0, static_cast<int64_t>(seen.size()) - 1 - window);
  const uint32_t kv_head = head / (kQueryHeads / kKvHeads);
  double sum = 0, want[kHeadDim] = {};
  for (size_t slot = static_cast<size_t>(first); slot < seen.size(); ++slot) {
    double logit = 0;
    for (uint32_t d = 0; d < kHeadDim; ++d) {
      logit += double{element(seen.back(), layer, out.draft, 0, head * kHeadDim + d)} *
               element(seen[slot], layer, out.draft, 1, kv_head * kHeadDim + d);
    }
    const double weight = std::exp(kScale * logit);
    sum += weight;
    for (uint32_t d = 0; d < kHeadDim; ++d) {
      want[d] += weight * element(seen[slot], layer, out.draft, 2, kv_head * kHeadDim + d);
    }
  }
  const size_t row = query * kQueryHeads + head;
  ASSERT_NEAR(out.lse[layer][row], std::log(sum), 1e-5) << "layer " << layer << ", query " << query;
  for (uint32_t d = 0; d < kHeadDim; ++d) {
    ASSERT_NEAR(out.output[layer][row * kHeadDim + d], want[d] / sum, 1e-5)
        << "layer " << layer << ", query " << query << ", head " << head;
  }
}

}  // namespace kvattn::testing
