// Hypotheses about rows that see nothing of a tile or of a split, and about what stands in for it.
#include <algorithm>
#include <cmath>

#include "harness/explain/catalogue.h"

namespace kv {
namespace {

constexpr double kLog2e = 0x1.71547652b82fep+0;

bool sees_any(const Reading& r, size_t first, size_t end) {
  const auto begin = r.copies.begin();
  return std::any_of(begin + static_cast<ptrdiff_t>(std::min(first, r.copies.size())),
                     begin + static_cast<ptrdiff_t>(std::min(end, r.copies.size())),
                     [](uint32_t copies) { return copies > 0; });
}

/// The tiles that a kernel walks over for the row.
struct Walk {
  uint32_t first = 0, end = 0;  // slots, multiples of the tile
};
std::optional<Walk> walk_of(const Scene& s, const RowAt& at, QueryTile rows, uint32_t tile) {
  const std::optional<SlotHull> hull = s.hull(at, rows);
  if (!hull) return std::nullopt;
  return Walk{hull->first / tile * tile, hull->last / tile * tile + tile};
}

/// Which tiles of a row have to be hidden for a state to be lost.
enum class Hidden : uint8_t { kFirstTile, kAnyTile };

bool has_hidden_tile(const Walk& walk, uint32_t tile, Hidden which, const Reading& r) {
  const uint32_t end = which == Hidden::kFirstTile ? walk.first + tile : walk.end;
  for (uint32_t first = walk.first; first < end; first += tile) {
    if (!sees_any(r, first, first + tile)) return true;
  }
  return false;
}

/// Every split counts, those of a row that sees nothing too.
bool has_hidden_split(const Scene& s, const RowAt& at, uint32_t size, const Reading& r) {
  const uint32_t length = std::max(s.step().rows[at.row].kv_length, 1u);
  for (uint32_t first = 0; first < length; first += size) {
    if (!sees_any(r, first, first + size)) return true;
  }
  return false;
}

/// The running maximum is not below 0: weights underflow where all scores lie far below. Between
/// what fp32 holds and what it flushes to 0 anything may be.
void start_at_zero(const Scene& s, Reading& r) {
  constexpr double kNormal = -100, kLost = -150;  // exponents of two
  const std::vector<double> scores = s.scores(r);
  if (scores.empty()) return;
  const double top = *std::max_element(scores.begin(), scores.end()) * kLog2e;
  if (top < kLost) {
    r.fate = RowFate::kNothingLeft;
  } else if (top < kNormal) {
    r.fate = RowFate::kAnything;
  }
}

void add_tile_states(uint32_t tile, QueryTile rows, std::vector<Hypothesis>& out) {
  const std::string size = std::to_string(tile);
  for (const Hidden which : {Hidden::kFirstTile, Hidden::kAnyTile}) {
    const std::string variant =
        std::to_string(rows.rows) + (which == Hidden::kFirstTile ? "/first" : "/any");
    out.push_back(of_family(
        "hidden-tile-nan", size, "a row to which a tile of {} keys is hidden becomes NaN",
        [=](const Scene& s, const RowAt& at, Reading& r) {
          const auto walk = walk_of(s, at, rows, tile);
          if (walk && has_hidden_tile(*walk, tile, which, r)) r.fate = RowFate::kNan;
        },
        variant));
    out.push_back(of_family(
        "hidden-tile-maximum-zero", size,
        "a row to which a tile of {} keys is hidden has a running maximum of 0, under which scores "
        "far below 0 vanish",
        [=](const Scene& s, const RowAt& at, Reading& r) {
          const auto walk = walk_of(s, at, rows, tile);
          if (walk && has_hidden_tile(*walk, tile, which, r)) start_at_zero(s, r);
        },
        variant));
  }
}

/// Slots of the walk that are nobody's are keys of zeros.
void add_zero_keys(const Walk& walk, const SlotHull& hull, Reading& r) {
  for (uint64_t slot = walk.first; slot < walk.end; ++slot) {
    if (slot >= hull.first && slot <= hull.last) continue;
    const double distance = static_cast<double>(slot) - static_cast<double>(r.alibi_anchor);
    r.zero_keys.push_back({slot, -r.alibi_slope * std::fabs(distance)});
  }
}

/// Hidden slots have a finite score, so that a row without others takes the mean of the tiles,
/// zeros beyond their ends included.
void take_mean(const Scene& s, const RowAt& at, QueryTile rows, uint32_t tile, Reading& r) {
  const auto walk = walk_of(s, at, rows, tile);
  if (!walk || sees_any(r, 0, r.copies.size())) return;
  r.lse_open = true;
  if (r.sink) {  // it outweighs them all
    r.fate = RowFate::kNothingLeft;
    return;
  }
  const SlotHull hull = *s.hull(at, rows);
  r.scale = r.softcap = r.alibi_slope = 0;
  std::fill(r.copies.begin() + hull.first, r.copies.begin() + hull.last + 1, 1u);
  add_zero_keys(*walk, hull, r);
}

void invert(const Scene& s, const RowAt& at, QueryTile rows, uint32_t tile, Reading& r) {
  const auto walk = walk_of(s, at, rows, tile);
  if (!walk) return;
  const SlotHull hull = *s.hull(at, rows);
  for (size_t i = 0; i < r.copies.size(); ++i) {
    r.copies[i] = i >= hull.first && i <= hull.last && r.copies[i] == 0 ? 1 : 0;
  }
  add_zero_keys(*walk, hull, r);
}

/// PAD slots before the prompt that lie in a tile with something else count as keys of zeros.
void see_pads_as_zeros(const Scene& s, const RowAt& at, QueryTile rows, uint32_t tile, Reading& r) {
  const auto walk = walk_of(s, at, rows, tile);
  if (!walk || !sees_any(r, 0, r.copies.size())) return;
  for (uint32_t slot = walk->first; slot < s.step().rows[at.row].key_begin; ++slot) {
    r.zero_keys.push_back({slot, 0});
  }
}

using InTiles = void (*)(const Scene&, const RowAt&, QueryTile, uint32_t, Reading&);

void add_tile_contents(uint32_t tile, QueryTile rows, std::vector<Hypothesis>& out) {
  constexpr struct {
    const char *family, *sentence;
    InTiles change;
  } kinds[] = {
      {"empty-row-mean-of-tile",
       "a row that sees nothing takes the mean of tiles of {} keys, as hidden scores are finite",
       take_mean},
      {"tile-polarity-inverted",
       "in tiles of {} keys hidden keys are seen and seen ones hidden, beyond the end too", invert},
      {"pad-as-zeros", "PAD before the prompt, in tiles of {} keys, is seen as keys of zeros",
       see_pads_as_zeros},
  };
  for (const auto& kind : kinds) {
    out.push_back(of_family(
        kind.family, std::to_string(tile), kind.sentence,
        [=, change = kind.change](const Scene& s, const RowAt& at, Reading& r) {
          change(s, at, rows, tile, r);
        },
        std::to_string(rows.rows)));
  }
}

void add_split_states(uint32_t size, std::vector<Hypothesis>& out) {
  out.push_back(of_family("hidden-split-nan", std::to_string(size),
                          "a row to which a split of {} keys is hidden becomes NaN",
                          [size](const Scene& s, const RowAt& at, Reading& r) {
                            if (has_hidden_split(s, at, size, r)) r.fate = RowFate::kNan;
                          }));
  out.push_back(of_family(
      "hidden-split-maximum-zero", std::to_string(size),
      "a split of {} keys that is hidden to a row reports the maximum 0, under which scores far "
      "below 0 vanish",
      [size](const Scene& s, const RowAt& at, Reading& r) {
        if (has_hidden_split(s, at, size, r)) start_at_zero(s, r);
      }));
}

}  // namespace

void state_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  out.push_back({"empty-row-nan", "a row that sees nothing becomes NaN",
                 [](const Scene&, const RowAt&, Reading& r) {
                   if (!sees_any(r, 0, r.copies.size())) r.fate = RowFate::kNan;
                 }});
  out.push_back({"maximum-missing",
                 "the softmax starts from a maximum of 0, under which scores far below 0 vanish",
                 [](const Scene& s, const RowAt&, Reading& r) { start_at_zero(s, r); }});
  for (const uint32_t size : split_sizes(scene)) add_split_states(size, out);
  for (const uint32_t tile : kTileSizes) {
    for (const QueryTile rows : kQueryTiles) {
      add_tile_states(tile, rows, out);
      add_tile_contents(tile, rows, out);
    }
  }
}

}  // namespace kv
