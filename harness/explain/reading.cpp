#include "harness/explain/reading.h"

#include <algorithm>

#include "harness/case/head_inputs.h"
#include "harness/case/mask_bits.h"
#include "harness/case/visibility.h"
#include "harness/core/check.h"
#include "harness/judge/contract_stage.h"
#include "harness/judge/value_stage.h"
#include "harness/plugin/kverify_plugin.h"

namespace kv {
namespace {

Timeline created(const Case& c) {
  auto timeline = Timeline::create(c);
  KV_CHECK(timeline.ok(), "a scene of a case that is not lawful");
  return std::move(timeline).value();
}

}  // namespace

Scene::Scene(const Case& c, const Observation& observation, uint32_t op_index)
    : case_(c),
      untensored_(c),
      seen_(observation.ops.at(op_index)),
      facts_(observation.plugin),
      timeline_(created(c)),
      pool_(c),
      profile_(profile_of(c, seen_.profile)) {
  untensored_.mask.encoding = MaskEncoding::kNone;
  for (uint32_t i = 0; i <= op_index; ++i) {
    step_ = timeline_.apply(i);
    for (const PageImage& image : observation.ops[i].pages) {
      if (pool_.defect(image).empty()) pool_.replace(image);
    }
  }
  for (uint32_t r = 0; r < step_.rows.size(); ++r) {
    for (uint32_t q = 0; q < step_.rows[r].queries; ++q) {
      const bool computed = facts_.pad_rows == KV_PAD_ROWS_COMPUTED;
      if (!computed && is_pad_row(timeline_, {&step_.rows[r], q, 0})) continue;
      for (uint32_t layer = 0; layer < c.shape.layers; ++layer) {
        for (uint32_t head = 0; head < c.shape.query_heads; ++head) {
          rows_.push_back({r, q, layer, head});
        }
      }
    }
  }
}

const Sequence& Scene::sequence(uint32_t row) const {
  return timeline_.sequence(step_.rows[row].request);
}

int64_t Scene::limit(const RowAt& at) const {
  const PlannedRow& row = step_.rows[at.row];
  if (case_.mask.causal == Causal::kTopLeft) return at.query;
  if (case_.mask.causal == Causal::kBottomRight) return query_slot(row, at.query);
  return int64_t{row.kv_length} - 1;
}

Reading Scene::honest(const RowAt& at) const {
  const PlannedRow& row = step_.rows[at.row];
  const uint32_t group = case_.shape.query_heads / case_.shape.kv_heads;
  Reading r;
  const std::vector<uint8_t> visible =
      visible_slots(case_, sequence(at.row), row, {at.query, at.head});
  r.copies.assign(visible.begin(), visible.end());
  r.copies.resize(sequence(at.row).pages.size() * page_slots(), 0);
  for (uint64_t s = 0; s < r.copies.size(); ++s) r.sources.push_back({at.row, s});
  r.query = at;
  r.key_head = r.value_head = at.head / group;
  r.layer = at.layer;
  r.scale = case_.shape.scale;
  r.softcap = case_.shape.softcap;
  const HeadPlace head{at.layer, at.head};
  if (case_.shape.alibi) r.alibi_slope = alibi_slope(case_, head);
  r.alibi_anchor =
      case_.mask.causal == Causal::kTopLeft ? int64_t{at.query} : query_slot(row, at.query);
  if (case_.shape.sinks) r.sink = sink_logit(case_, head);
  r.rope = case_.shape.rope;
  r.stored_type = case_.shape.kv_dtype;
  return r;
}

const std::vector<uint8_t>& Scene::shown_by_rules(const RowAt& at) const {
  const auto [found, is_new] = rules_.try_emplace({at.row, at.query});
  if (is_new) {
    PlannedRow row = step_.rows[at.row];
    row.tree_parents.clear();
    found->second = visible_slots(untensored_, sequence(at.row), row, {at.query, at.head});
  }
  return found->second;
}

std::vector<uint8_t> Scene::shown_by_tensors(const RowAt& at) const {
  const PlannedRow& row = step_.rows[at.row];
  const int64_t stands_at = query_slot(row, at.query);
  const MaskRow tensor(case_, sequence(at.row), {at.query, at.head});
  std::vector<uint8_t> shown(row.kv_length);
  for (uint32_t key = 0; key < row.kv_length; ++key) {
    shown[key] = tree_shows(sequence(at.row), row, {stands_at, key}) && tensor.shows(key);
  }
  return shown;
}

SlotHull Scene::queries_of_tile(const RowAt& at, QueryTile tile) const {
  const uint32_t last = step_.rows[at.row].queries - 1;
  if (tile.rows == 0) return {0, last};
  const uint32_t group = case_.shape.query_heads / case_.shape.kv_heads;
  const uint32_t index = (at.query * group + at.head % group) / tile.rows;
  return {index * tile.rows / group, std::min(last, ((index + 1) * tile.rows - 1) / group)};
}

std::optional<SlotHull> Scene::hull(const RowAt& at, QueryTile tile) const {
  const SlotHull queries = queries_of_tile(at, tile);
  std::optional<SlotHull> hull;
  RowAt other = at;
  for (other.query = queries.first; other.query <= queries.last; ++other.query) {
    const std::vector<uint8_t>& shown = shown_by_rules(other);
    for (uint32_t s = 0; s < shown.size(); ++s) {
      if (shown[s] == 0) continue;
      if (!hull) hull = SlotHull{s, s};
      hull->first = std::min(hull->first, s);
      hull->last = std::max(hull->last, s);
    }
  }
  return hull;
}

uint64_t Scene::token(const RowAt& at) const {
  uint64_t token = at.query;
  for (uint32_t r = 0; r < at.row; ++r) token += step_.rows[r].queries;
  return token;
}

uint64_t Scene::tokens() const {
  uint64_t tokens = 0;
  for (const PlannedRow& row : step_.rows) tokens += row.queries;
  return tokens;
}

RowAt Scene::row_of_token(uint64_t token, const RowAt& like) const {
  RowAt at = like;
  at.row = 0;
  while (token >= step_.rows.at(at.row).queries) token -= step_.rows[at.row++].queries;
  at.query = static_cast<uint32_t>(token);
  return at;
}

bool Scene::has_padded_layout() const {
  return std::get<op::Step>(case_.ops.at(step_.op_index)).padded_layout;
}

bool Scene::lse_is_head_major() const { return facts_.lse_layout == KV_LSE_HEAD_MAJOR; }

}  // namespace kv
