#include "properties/decoder/engine_decoder.h"

#include <algorithm>
#include <cstring>

#include "harness/core/check.h"
#include "harness/core/formats.h"
#include "harness/history/token_path.h"

namespace kv::decoder {
namespace {

constexpr DLDataType kHalf = {kDLFloat, 16, 1};

void store(std::span<const float> values, void* to) {
  auto* half = static_cast<uint16_t*>(to);
  for (size_t i = 0; i < values.size(); ++i)
    half[i] = static_cast<uint16_t>(encode(DType::kF16, values[i]));
}

size_t queries_of(const DecoderRow& row) { return std::max<size_t>(row.append.size(), 1); }

kv_attention_shape shape_of(const DecoderOptions& options) {
  kv_attention_shape shape = {};
  shape.struct_bytes = sizeof shape;
  shape.query_heads = kHeads;
  shape.kv_heads = kKvHeads;
  shape.head_dim_k = shape.head_dim_v = kHeadDim;
  shape.page_slots = options.page_slots;
  shape.query_dtype = shape.kv_dtype = shape.output_dtype = kHalf;
  shape.scale = kScale;
  shape.causal = KV_CAUSAL_BOTTOM_RIGHT;
  shape.window_left = shape.window_right = -1;
  return shape;
}

}  // namespace

EngineDecoder::EngineDecoder(const kv_engine_level& level, const DecoderOptions& options)
    : level_(level),
      options_(options),
      target_(options.seed, options.layers),
      draft_(~options.seed, options.draft_layers) {
  const kv_attention_shape shape = shape_of(options);
  const kv_layer_group group = {sizeof group, options.layers, -1};
  kv_engine_config config = {};
  config.struct_bytes = sizeof config;
  config.shape = &shape;
  config.groups = &group;
  config.group_count = 1;
  config.page_count = options.pages;
  config.batch_slots = config.request_max = options.requests;
  config.context_limit = options.context_limit;
  config.step_tokens_max = options.step_tokens_max;
  config.overcommit = 1e6;
  config.prefix_cache = options.prefix_cache ? 1 : 0;
  config.draft_layers = options.draft_layers;
  config.draft_page_count = options.draft_layers > 0 ? options.pages : 0;
  config.harness = this;
  config.fill_qkv = fill;
  config.dependent_layers = 1;
  check(level_.supports(&config, &why_), "supports");
  check(level_.create(&config, &engine_, &why_), "create");
}

EngineDecoder::~EngineDecoder() {
  if (engine_ != nullptr) level_.destroy(engine_);
}

void EngineDecoder::check(kv_status status, const char* what) const {
  if (status != KV_OK) throw EngineRefusal(status, std::string(what) + ": " + why_.text);
}

EngineDecoder::Request& EngineDecoder::at(uint32_t request) {
  const auto found = requests_.find(request);
  KV_CHECK(found != requests_.end(), "a request that exists");
  return found->second;
}
const std::vector<Token>& EngineDecoder::tokens(uint32_t request) const {
  return requests_.at(request).target.tokens;
}
uint64_t EngineDecoder::draft_length(uint32_t request) const {
  return requests_.at(request).draft.tokens.size();
}

uint64_t EngineDecoder::admit(uint32_t request, const std::vector<Token>& prompt) {
  Held all;
  extend(all, {.append = prompt});
  const std::vector<uint64_t> ids(prompt.begin(), prompt.end());
  kv_admission admission = {};
  admission.struct_bytes = sizeof admission;
  admission.request = request;
  admission.tokens = ids.data();
  admission.histories = all.paths.data();
  admission.prompt_tokens = ids.size();
  admission.slots_max = options_.context_limit;
  kv_admitted admitted = {};
  admitted.struct_bytes = sizeof admitted;
  check(level_.admit(engine_, &admission, &admitted, &why_), "admit");
  all.tokens.resize(admitted.length);
  all.paths.resize(admitted.length);
  requests_[request] = {.handle = admitted.handle, .target = std::move(all), .draft = {}};
  return admitted.length;
}

// A tree's token follows its parent, not the token in the slot before.
void EngineDecoder::extend(Held& held, const DecoderRow& row) const {
  const auto base = static_cast<int64_t>(held.tokens.size());
  for (size_t i = 0; i < row.append.size(); ++i) {
    const int64_t parent = row.parents.empty() ? static_cast<int64_t>(i) - 1 : row.parents[i];
    const int64_t before = base + parent;
    const uint64_t history =
        before < 0 ? path_root(options_.seed, 0) : held.paths[static_cast<size_t>(before)];
    held.tokens.push_back(row.append[i]);
    held.paths.push_back(path_next(history, row.append[i], 0));
  }
}

// The tokens that the step attends with.
void EngineDecoder::activate(const DecoderRow& row, const Held& held) {
  const size_t count = queries_of(row);
  const size_t base = held.tokens.size() - count;
  std::vector<uint64_t> depths;
  for (size_t i = 0; i < count; ++i) {
    uint64_t depth = base + i;
    if (!row.parents.empty()) {
      depth = row.parents[i] < 0 ? base : depths[static_cast<size_t>(row.parents[i])] + 1;
    }
    depths.push_back(depth);
    active_[{row.request, held.paths[base + i]}] = {
        .token = held.tokens[base + i], .row = output_rows_++, .depth = depth};
  }
}

std::vector<RowLogits> EngineDecoder::step(const std::vector<DecoderRow>& rows, bool draft) {
  is_draft_ = draft;
  active_.clear();
  output_rows_ = 0;
  std::vector<Held> after;
  for (const DecoderRow& row : rows) {
    after.push_back(draft ? at(row.request).draft : at(row.request).target);
    extend(after.back(), row);
    activate(row, after.back());
  }
  call_engine(rows, after);
  if (!draft) ++work_.steps;
  std::vector<RowLogits> logits(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = after[i].paths.size() - queries_of(rows[i]); j < after[i].paths.size(); ++j) {
      Active& active = active_.at({rows[i].request, after[i].paths[j]});
      advance(active, model().layers());
      logits[i].push_back(model().logits(active.x, active.token));
    }
    (draft ? at(rows[i].request).draft : at(rows[i].request).target) = std::move(after[i]);
  }
  return logits;
}

void EngineDecoder::call_engine(const std::vector<DecoderRow>& rows,
                                const std::vector<Held>& after) {
  std::vector<std::vector<uint64_t>> ids;
  for (const DecoderRow& row : rows) ids.emplace_back(row.append.begin(), row.append.end());
  std::vector<kv_step_row> asked;
  for (size_t i = 0; i < rows.size(); ++i) {
    kv_step_row r = {};
    r.struct_bytes = sizeof r;
    r.request = rows[i].request;
    r.handle = at(r.request).handle;
    r.length = after[i].tokens.size() - rows[i].append.size();
    r.append_tokens = static_cast<uint32_t>(rows[i].append.size());
    r.query_tokens = static_cast<uint32_t>(queries_of(rows[i]));
    r.speculative_tokens = rows[i].speculative;
    r.dtype = kHalf;
    r.tokens = ids[i].data();
    r.histories = after[i].paths.data() + (after[i].paths.size() - queries_of(rows[i]));
    r.tree_parents = rows[i].parents.empty() ? nullptr : rows[i].parents.data();
    asked.push_back(r);
  }
  const uint32_t layers = model().layers();
  outputs_.assign(layers, std::vector<uint16_t>(output_rows_ * kWidth));
  std::vector<std::vector<float>> lses(layers, std::vector<float>(output_rows_ * kHeads));
  std::vector<void*> outputs;
  std::vector<float*> lse_rows;
  for (uint32_t layer = 0; layer < layers; ++layer) {
    outputs.push_back(outputs_[layer].data());
    lse_rows.push_back(lses[layer].data());
  }
  kv_step step = {};
  step.struct_bytes = sizeof step;
  step.rows = asked.data();
  step.row_count = static_cast<uint32_t>(asked.size());
  step.draft = is_draft_ ? 1 : 0;
  step.outputs = outputs.data();
  step.lses = lse_rows.data();
  uint64_t number = 0;
  check(level_.step(engine_, &step, &number, &why_), "step");
}

void EngineDecoder::advance(Active& active, uint32_t layer) {
  for (; active.next_layer < layer; ++active.next_layer) {
    std::array<float, kWidth> output;
    for (uint32_t i = 0; i < kWidth; ++i) {
      const uint16_t bits = outputs_[active.next_layer][active.row * kWidth + i];
      output[i] = static_cast<float>(decode(DType::kF16, bits));
    }
    active.x = model().after_attention(active.x, active.next_layer, output);
  }
}

kv_status EngineDecoder::fill(void* harness, const kv_token* token, void* q, void* k, void* v) {
  auto& self = *static_cast<EngineDecoder*>(harness);
  const auto found = self.active_.find({token->request, token->history});
  if (found == self.active_.end() || (token->draft != 0) != self.is_draft_) return KV_REFUSED;
  Active& active = found->second;
  if (token->layer == 0) {
    active.x = self.model().embed(active.token, token->position);
    active.next_layer = 0;
  }
  self.advance(active, token->layer);
  std::array<float, kWidth> heads;
  std::array<float, kHeadDim> head;
  if (q != nullptr) {
    self.model().query(active.x, token->layer, heads);
    store(heads, q);
    if (!self.is_draft_ && token->layer == 0) self.work_.products += active.depth + 1;
  }
  if (k != nullptr) {
    self.model().key(active.x, token->layer, head);
    store(head, k);
    if (!self.is_draft_ && token->layer == 0) ++self.work_.projected;
  }
  if (v != nullptr) {
    self.model().value(active.x, token->layer, head);
    store(head, v);
  }
  return KV_OK;
}

void EngineDecoder::fork(uint32_t parent, uint32_t child) {
  kv_admitted admitted = {};
  admitted.struct_bytes = sizeof admitted;
  check(level_.fork(engine_, parent, child, &admitted, &why_), "fork");
  Request copy = at(parent);
  copy.handle = admitted.handle;
  requests_[child] = std::move(copy);
}

void EngineDecoder::reorder(const std::vector<uint32_t>& beams,
                            const std::vector<uint32_t>& sources) {
  check(level_.reorder(engine_, beams.data(), sources.data(), static_cast<uint32_t>(beams.size()),
                       &why_),
        "reorder");
  const auto before = requests_;
  for (size_t i = 0; i < beams.size(); ++i) {
    at(beams[i]).target = before.at(sources[i]).target;
    at(beams[i]).draft = before.at(sources[i]).draft;
  }
}

void EngineDecoder::truncate(uint32_t request, uint64_t length) {
  check(level_.truncate(engine_, request, length, &why_), "truncate");
  for (Held* held : {&at(request).target, &at(request).draft}) {
    if (held->tokens.size() <= length) continue;
    held->tokens.resize(length);
    held->paths.resize(length);
  }
}

void EngineDecoder::cancel(uint32_t request) {
  check(level_.cancel(engine_, request, &why_), "cancel");
  requests_.erase(request);
}

}  // namespace kv::decoder
