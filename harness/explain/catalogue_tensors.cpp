// Hypotheses about mask tensors and trees of drafted tokens.
#include <algorithm>

#include "harness/case/mask_bits.h"
#include "harness/case/visibility.h"
#include "harness/explain/catalogue.h"

namespace kv {
namespace {

/// The row of the mask tensor that is read.
struct MaskPlace {
  uint32_t row = 0;  // of the step
  QueryHead of;
};

/// Sees what the rules show and `shows` does not hide.
template <class Shows>
void see(const Scene& s, const RowAt& at, Reading& r, Shows shows) {
  const std::vector<uint8_t>& rules = s.shown_by_rules(at);
  for (uint32_t key = 0; key < rules.size(); ++key) r.copies[key] = rules[key] && shows(key);
}

bool in_tree(const Scene& s, const RowAt& at, int64_t key) {
  const PlannedRow& row = s.step().rows[at.row];
  return tree_shows(s.sequence(at.row), row, {query_slot(row, at.query), key});
}

/// Rows of a tensor that are nobody's show everything, and so do its columns past a request's end.
void read_mask_of(const Scene& s, const RowAt& at, const MaskPlace& place, Reading& r) {
  const PlannedRow& row = s.step().rows[place.row];
  if (place.of.query >= row.queries) {
    see(s, at, r, [&](uint32_t key) { return in_tree(s, at, key); });
    return;
  }
  const MaskRow tensor(s.c(), s.sequence(place.row), place.of);
  see(s, at, r, [&](uint32_t key) {
    return in_tree(s, at, key) && (key >= row.kv_length || tensor.shows(key));
  });
}

using PlaceOf = MaskPlace (*)(const Scene&, const RowAt&);

void place_hypotheses_of_mask(std::vector<Hypothesis>& out) {
  constexpr struct {
    const char *name, *sentence;
    PlaceOf place;
  } kinds[] = {
      {"mask-of-head-zero", "every query head reads the mask of head 0",
       [](const Scene&, const RowAt& at) {
         return MaskPlace{at.row, {at.query, 0}};
       }},
      {"mask-of-kv-head", "the mask is looked up by the number of the KV head",
       [](const Scene& s, const RowAt& at) {
         const Shape& shape = s.c().shape;
         const uint32_t group = shape.query_heads / shape.kv_heads;
         return MaskPlace{at.row, {at.query, at.head / group}};
       }},
      {"mask-of-next-head", "every query head reads the mask of the next one",
       [](const Scene& s, const RowAt& at) {
         return MaskPlace{at.row, {at.query, (at.head + 1) % s.c().shape.query_heads}};
       }},
      {"mask-of-first-request", "every request reads the mask of the first one",
       [](const Scene&, const RowAt& at) {
         return MaskPlace{0, {at.query, at.head}};
       }},
      {"mask-of-first-query", "every query reads the mask of the first one",
       [](const Scene&, const RowAt& at) {
         return MaskPlace{at.row, {0, at.head}};
       }},
      {"mask-of-next-query", "every query reads the mask of the next one",
       [](const Scene&, const RowAt& at) {
         return MaskPlace{at.row, {at.query + 1, at.head}};
       }},
      {"mask-of-previous-query", "every query reads the mask of the one before",
       [](const Scene&, const RowAt& at) {
         return MaskPlace{at.row, {at.query - (at.query > 0), at.head}};
       }},
  };
  for (const auto& kind : kinds) {
    out.push_back({kind.name, kind.sentence,
                   [place = kind.place](const Scene& s, const RowAt& at, Reading& r) {
                     read_mask_of(s, at, place(s, at), r);
                   }});
  }
}

void content_hypotheses_of_mask(std::vector<Hypothesis>& out) {
  out.push_back({"mask-ignored", "the mask tensor is ignored",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   see(s, at, r, [&](uint32_t key) { return in_tree(s, at, key); });
                 }});
  out.push_back({"mask-inverted", "the mask tensor hides what it should show, and shows the rest",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   const MaskRow tensor(s.c(), s.sequence(at.row), {at.query, at.head});
                   see(s, at, r,
                       [&](uint32_t key) { return in_tree(s, at, key) && !tensor.shows(key); });
                 }});
  for (const int64_t by : {1, -1}) {
    out.push_back(
        {by > 0 ? "mask-key-plus-one" : "mask-key-minus-one",
         std::string("the mask tensor is read one column too ") + (by > 0 ? "far" : "near"),
         [by](const Scene& s, const RowAt& at, Reading& r) {
           const MaskRow tensor(s.c(), s.sequence(at.row), {at.query, at.head});
           const int64_t length = s.step().rows[at.row].kv_length;
           see(s, at, r, [&](uint32_t key) {
             const int64_t column = key + by;
             if (column < 0 || column >= length) return in_tree(s, at, key);
             return in_tree(s, at, key) && tensor.shows(static_cast<uint32_t>(column));
           });
         }});
  }
}

/// Do the rules show every slot of the tile to every row that is computed beside this one?
bool is_full_tile(const Scene& s, const RowAt& at, QueryTile rows, uint32_t first, uint32_t tile) {
  const SlotHull queries = s.queries_of_tile(at, rows);
  RowAt other = at;
  for (other.query = queries.first; other.query <= queries.last; ++other.query) {
    const std::vector<uint8_t>& shown = s.shown_by_rules(other);
    for (uint32_t slot = first; slot < first + tile; ++slot) {
      if (slot >= shown.size() || shown[slot] == 0) return false;
    }
  }
  return true;
}

// Masks are applied where a causal limit or an end cuts a tile, and only there. Trees alike.
void full_tile_hypotheses(std::vector<Hypothesis>& out) {
  for (const uint32_t tile : kTileSizes) {
    for (const QueryTile rows : kQueryTiles) {
      out.push_back(of_family(
          "mask-ignored-in-full-tiles", std::to_string(tile),
          "mask tensor and tree are ignored in tiles of {} keys that no causal limit, window or "
          "end cuts",
          [=](const Scene& s, const RowAt& at, Reading& r) {
            const std::vector<uint8_t> tensors = s.shown_by_tensors(at);
            std::vector<uint8_t> full;
            for (uint32_t first = 0; first < tensors.size(); first += tile)
              full.push_back(is_full_tile(s, at, rows, first, tile));
            see(s, at, r, [&](uint32_t key) { return full[key / tile] || tensors[key]; });
          },
          std::to_string(rows.rows)));
    }
  }
}

// What an additive mask hides has its lowest finite score: rows of which it hides everything are
// attention, uniform where the sum absorbs the score.
void add_minimum(const Scene& s, const RowAt& at, Reading& r) {
  const bool absorbs = s.c().mask.additive_dtype != DType::kF16;
  const double minimum = -dtype_max(s.c().mask.additive_dtype);
  const auto visible = [](uint32_t copies) { return copies > 0; };
  if (std::any_of(r.copies.begin(), r.copies.end(), visible)) return;
  see(s, at, r, [&](uint32_t key) { return in_tree(s, at, key); });
  if (absorbs) {
    r.scale = r.softcap = r.alibi_slope = 0;
    r.lse_open = true;
  } else {
    r.bias.assign(r.copies.size(), minimum);
  }
}

void tree_hypotheses(std::vector<Hypothesis>& out) {
  constexpr auto kWithMask = [](const Scene& s, const RowAt& at, uint32_t key) {
    return MaskRow(s.c(), s.sequence(at.row), {at.query, at.head}).shows(key);
  };
  out.push_back({"tree-ignored", "the tree is ignored: branches see each other",
                 [=](const Scene& s, const RowAt& at, Reading& r) {
                   see(s, at, r, [&](uint32_t key) { return kWithMask(s, at, key); });
                 }});
  out.push_back({"tree-from-first-query",
                 "the tree's first column is taken for the slot of the first query row",
                 [=](const Scene& s, const RowAt& at, Reading& r) {
                   const PlannedRow& row = s.step().rows[at.row];
                   if (row.tree_parents.empty()) return;
                   const int64_t first_new = int64_t{row.kv_length} - row.append_slots;
                   see(s, at, r, [&](uint32_t key) {
                     const int64_t column = key - query_slot(row, 0);
                     const bool shown = column < 0 || column >= row.append_slots ||
                                        in_tree(s, at, first_new + column);
                     return shown && kWithMask(s, at, key);
                   });
                 }});
  for (const int64_t by : {1, -1}) {
    out.push_back({by > 0 ? "tree-key-plus-one" : "tree-key-minus-one",
                   std::string("the tree is read one column too ") + (by > 0 ? "far" : "near"),
                   [=](const Scene& s, const RowAt& at, Reading& r) {
                     const PlannedRow& row = s.step().rows[at.row];
                     if (row.tree_parents.empty()) return;
                     const int64_t first_new = int64_t{row.kv_length} - row.append_slots;
                     see(s, at, r, [&](uint32_t key) {
                       const int64_t column = key - first_new + by;
                       const bool shown = column < 0 || column >= row.append_slots ||
                                          in_tree(s, at, first_new + column);
                       return shown && kWithMask(s, at, key);
                     });
                   }});
  }
  out.push_back({"tree-parent-alone",
                 "of its branch a drafted token sees its parent, and no older ancestor",
                 [=](const Scene& s, const RowAt& at, Reading& r) {
                   const PlannedRow& row = s.step().rows[at.row];
                   if (row.tree_parents.empty()) return;
                   const int64_t first_new = int64_t{row.kv_length} - row.append_slots;
                   const int64_t own = query_slot(row, at.query);
                   int64_t ancestors = 0;  // from the nearest on
                   for (int64_t key = own - 1; key >= first_new; --key) {
                     const auto slot = static_cast<size_t>(key);
                     if (r.copies[slot] == 0 || !in_tree(s, at, key)) continue;
                     if (++ancestors > 1) r.copies[slot] = 0;
                   }
                 }});
  out.push_back({"tree-self-alone", "of the new tokens a drafted token sees itself only",
                 [=](const Scene& s, const RowAt& at, Reading& r) {
                   const PlannedRow& row = s.step().rows[at.row];
                   if (row.tree_parents.empty()) return;
                   const int64_t own = query_slot(row, at.query);
                   for (int64_t key = int64_t{row.kv_length} - row.append_slots; key < own; ++key)
                     r.copies[static_cast<size_t>(key)] = 0;
                 }});
}

bool has_tree(const Scene& scene) {
  const auto& rows = scene.step().rows;
  return std::any_of(rows.begin(), rows.end(),
                     [](const PlannedRow& row) { return !row.tree_parents.empty(); });
}

}  // namespace

void tensor_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  const Mask& mask = scene.c().mask;
  const bool masked = mask.encoding != MaskEncoding::kNone;
  if (has_tree(scene)) tree_hypotheses(out);
  if (masked || has_tree(scene)) full_tile_hypotheses(out);
  if (!masked) return;
  place_hypotheses_of_mask(out);
  content_hypotheses_of_mask(out);
  if (mask.encoding == MaskEncoding::kAdditive && mask.additive_finite_minimum) {
    out.push_back({"mask-minimum-added",
                   "the lowest finite value of an additive mask is added, and hides nothing from a "
                   "row that has no other key",
                   add_minimum});
  }
}

}  // namespace kv
