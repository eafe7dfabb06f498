// Hypotheses about tiles whose K and V are read from elsewhere: stages and pages that stay behind.
#include <algorithm>

#include "harness/explain/catalogue.h"

namespace kv {
namespace {

/// Which tile stands in a stage that was not advanced, or not awaited.
enum class Stale : uint8_t { kFirst, kPrevious };

void read_stale_tiles(const Scene& s, const RowAt& at, uint32_t tile, Stale stale, Reading& r) {
  const std::optional<SlotHull> hull = s.hull(at, {});
  if (!hull) return;
  const size_t first = hull->first / tile * tile;
  for (size_t slot = first + tile; slot < r.sources.size(); ++slot) {
    const size_t from = stale == Stale::kFirst ? first + (slot - first) % tile : slot - tile;
    r.sources[slot].slot = from;
  }
}

void stage_hypotheses(std::vector<Hypothesis>& out) {
  for (const uint32_t tile : kTileSizes) {
    for (const Stale stale : {Stale::kFirst, Stale::kPrevious}) {
      const bool first = stale == Stale::kFirst;
      out.push_back(of_family(first ? "tile-as-first" : "tile-as-previous", std::to_string(tile),
                              std::string("K and V of every tile of {} keys after the first are "
                                          "those of the ") +
                                  (first ? "first" : "tile before"),
                              [=](const Scene& s, const RowAt& at, Reading& r) {
                                read_stale_tiles(s, at, tile, stale, r);
                              }));
    }
  }
}

/// Slots of a tile take the page of the one that is `step` slots before, at the tile's start: the
/// page is looked up in the first step of the tile, and not in those that follow.
void read_pages_of_first_step(const Scene& s, uint32_t tile, uint32_t step,
                              std::vector<SlotSource>& sources) {
  const size_t page_slots = s.page_slots();
  for (size_t slot = 0; slot < sources.size(); ++slot) {
    const size_t looked_up = slot / tile * tile + slot % tile % step;
    sources[slot].slot = looked_up / page_slots * page_slots + slot % page_slots;
  }
}

void page_hypotheses(std::vector<Hypothesis>& out) {
  constexpr uint32_t kTile = 32;
  for (uint32_t step = 1; step < kTile; step *= 2) {
    const std::string size = std::to_string(step);
    out.push_back(of_family(
        "value-page-of-first-step", size,
        "in tiles of 32 keys, V of all steps of {} keys is read from the pages of the first step",
        [=](const Scene& s, const RowAt&, Reading& r) {
          r.value_sources = r.sources;
          read_pages_of_first_step(s, kTile, step, r.value_sources);
          if (r.value_sources == r.sources) r.value_sources.clear();
        }));
    out.push_back(of_family(
        "page-of-first-step", size,
        "in tiles of 32 keys, K and V of all steps of {} keys are read from the pages of the "
        "first step",
        [=](const Scene& s, const RowAt&, Reading& r) {
          read_pages_of_first_step(s, kTile, step, r.sources);
        }));
  }
}

}  // namespace

void tile_hypotheses(std::vector<Hypothesis>& out) {
  stage_hypotheses(out);
  page_hypotheses(out);
}

}  // namespace kv
