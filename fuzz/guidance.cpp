#include "fuzz/guidance.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "harness/case/timeline.h"
#include "harness/core/hash.h"

namespace kv::fuzzing {
namespace {

constexpr size_t kEdges = 1 << 15, kPairs = 1 << 14, kSingles = 1024, kRatios = 64, kNotes = 1024;
constexpr size_t kRelationKinds = 32, kValues = kSingles / kRelationKinds;

// libFuzzer finds its counters by the section's name, in the executable: hence a global.
__attribute__((section("__libfuzzer_extra_counters"), used))
uint8_t g_counters[kEdges + kPairs + kSingles + kRatios + kNotes];

// How often each pair of relations was met in this run.
std::array<uint32_t, 1 << 16>& pairs_met() {
  static std::array<uint32_t, 1 << 16> met = {};
  return met;
}

void count(size_t index) {
  if (g_counters[index] < 255) ++g_counters[index];
}

/// 0: whole; 1: one more; 2: one less; 3: anything else; +4 below one unit.
uint8_t residue(uint64_t length, uint64_t unit) {
  if (unit <= 1) return 7;
  const uint64_t rest = length % unit;
  const uint8_t kind = rest == 0 ? 0 : rest == 1 ? 1 : rest == unit - 1 ? 2 : 3;
  return static_cast<uint8_t>(kind + (length < unit ? 8 : 0));
}

uint8_t size_class(uint64_t value) {
  uint8_t log = 0;
  for (; value > 4; value >>= 1) ++log;
  return static_cast<uint8_t>(std::min<uint64_t>(value, 4) + log);
}

/// Keys that a query row may see, without padding, masks and trees: [low, high].
struct Hull {
  int64_t low = 0, high = -1;
  bool empty() const { return low > high; }
};
Hull hull_of(const Mask& mask, const PlannedRow& row, uint32_t query) {
  const int64_t shift =
      mask.causal == Causal::kTopLeft ? 0 : int64_t{row.kv_length} - int64_t{row.queries};
  const int64_t at = shift + query;
  Hull hull{row.key_begin, int64_t{row.key_end} - 1};
  if (mask.causal != Causal::kNone) hull.high = std::min(hull.high, at);
  if (mask.window_left >= 0) hull.low = std::max(hull.low, at - mask.window_left);
  if (mask.window_right >= 0) hull.high = std::min(hull.high, at + mask.window_right);
  return hull;
}

struct RowFacts {
  bool empty_row = false, empty_split = false, partly_split = false, from_middle = false;
};
RowFacts facts_of(const Case& c, const PlannedRow& row, uint32_t splits) {
  RowFacts facts;
  const uint64_t split = c.exec.split_slots != 0
                             ? c.exec.split_slots
                             : (row.kv_length + std::max(splits, 1U) - 1) / std::max(splits, 1U);
  for (uint32_t query = 0; query < row.queries; ++query) {
    const Hull hull = hull_of(c.mask, row, query);
    facts.empty_row |= hull.empty();
    if (hull.empty() || split == 0) continue;
    facts.empty_split |=
        hull.low >= static_cast<int64_t>(split) ||
        static_cast<uint64_t>(hull.high) / split + 1 < (row.kv_length + split - 1) / split;
    facts.partly_split |= hull.low % static_cast<int64_t>(split) != 0;
    facts.from_middle |= hull.low % c.pool.page_slots != 0;
  }
  return facts;
}

uint8_t flags(std::initializer_list<bool> bits) {
  uint8_t value = 0;
  for (const bool bit : bits) value = static_cast<uint8_t>(value << 1 | bit);
  return value;
}

using Add = std::function<void(uint64_t)>;

void add_settings(const Case& c, const Add& add) {
  const Shape& s = c.shape;
  const Mask& m = c.mask;
  const uint64_t page = c.pool.page_slots;
  add(s.query_heads / s.kv_heads);
  add(s.kv_heads);
  add(static_cast<uint64_t>(s.query_dtype));
  add(s.head_dim_k / 8);
  add(flags({s.softcap > 0, s.alibi, s.sinks}));
  add(flags({s.scale < 0, s.scale == 0, s.scale >= 1}));
  add(static_cast<uint64_t>(m.causal));
  add(m.window_left < 0 ? 15 : residue(static_cast<uint64_t>(m.window_left), page));
  add(m.window_right < 0 ? 15 : size_class(static_cast<uint64_t>(m.window_right)));
  add(static_cast<uint64_t>(m.encoding) * 4 + flags({m.broadcast_head, m.broadcast_query}));
  add(size_class(page));
  add(static_cast<uint64_t>(c.pool.layout) * 4 + static_cast<uint64_t>(c.pool.order));
  add(static_cast<uint64_t>(c.data.design));
  add(c.exec.split_slots == 0 ? 15 : residue(c.exec.split_slots, page));
}

void add_row(const Case& c, const PlannedRow& row, uint32_t splits, const Add& add) {
  const uint64_t length = row.kv_length, queries = row.queries;
  const RowFacts facts = facts_of(c, row, splits);
  add(residue(length, c.pool.page_slots));
  add(residue(length, 64));
  add(residue(length, 16));
  add(size_class(length));
  add(queries > length ? 9 : queries == length ? 10 : std::min<uint64_t>(queries, 8));
  add(c.exec.split_slots == 0 ? 15 : residue(length, c.exec.split_slots));
  add(flags({facts.empty_row, facts.empty_split, facts.partly_split, facts.from_middle}));
  add(flags({row.key_begin > 0, row.key_end < length, row.holes, !row.tree_parents.empty()}));
  add(c.mask.window_left < 0 ? 15
      : static_cast<uint64_t>(c.mask.window_left) >= length
          ? 14
          : residue(length - static_cast<uint64_t>(c.mask.window_left), c.pool.page_slots));
}

size_t number_of(const Relation& r) { return r.what * kValues + r.value; }

/// visit(a hash of the pair), whatever the order of the two.
template <class Visit>
void each_pair(std::span<const Relation> relations, Visit visit) {
  for (size_t i = 0; i < relations.size(); ++i) {
    for (size_t j = i + 1; j < relations.size(); ++j) {
      const size_t a = number_of(relations[i]), b = number_of(relations[j]);
      visit(std::min(a, b) * 2654435761U + std::max(a, b) * 40503U);
    }
  }
}

}  // namespace

std::span<uint8_t> edge_counters() { return {g_counters, kEdges}; }

std::vector<Relation> relations_of(const Case& c, std::string_view variant, uint32_t splits) {
  std::vector<Relation> relations;
  uint8_t what = 0;
  const Add add = [&](uint64_t value) {
    relations.push_back({what++, static_cast<uint8_t>(std::min<uint64_t>(value, kValues - 1))});
  };
  add(hash_bytes(std::as_bytes(std::span(variant))) % kValues);
  add(std::min(splits, 8U));
  add_settings(c, add);
  auto timeline = Timeline::create(c);
  if (!timeline.ok()) return relations;
  PlannedStep last;
  for (uint32_t i = 0; i < c.ops.size(); ++i) {
    PlannedStep step = timeline->apply(i);
    if (!step.rows.empty()) last = std::move(step);
  }
  add(last.rows.size());
  const uint8_t of_row = what;
  for (const PlannedRow& row : last.rows) {
    what = of_row;
    if (row.queries > 0) add_row(c, row, splits, add);
  }
  return relations;
}

void note_relations(std::span<const Relation> relations) {
  constexpr size_t kFirstPair = kEdges, kFirstSingle = kEdges + kPairs;
  for (const Relation& r : relations) g_counters[kFirstSingle + number_of(r)] = 1;
  each_pair(relations, [](uint64_t pair) { g_counters[kFirstPair + pair % kPairs] = 1; });
}

double novelty_of(std::span<const Relation> relations) {
  double sum = 0;
  uint64_t pairs = 0;
  each_pair(relations, [&](uint64_t pair) {
    sum += 1 / (1.0 + pairs_met()[pair % pairs_met().size()]);
    ++pairs;
  });
  return pairs > 0 ? sum / static_cast<double>(pairs) : 0;
}

void meet(std::span<const Relation> relations) {
  each_pair(relations, [](uint64_t pair) { ++pairs_met()[pair % pairs_met().size()]; });
}

void note_ratio(double ratio) {
  if (!(ratio > 0)) return;
  // Eight steps for each halving: nearer to the bound is news.
  const double place = std::clamp(32 + 8 * std::log2(ratio) / 2, 0.0, 63.0);
  count(kEdges + kPairs + kSingles + static_cast<size_t>(place));
}

void note(uint32_t number) { count(kEdges + kPairs + kSingles + kRatios + number % kNotes); }

}  // namespace kv::fuzzing
