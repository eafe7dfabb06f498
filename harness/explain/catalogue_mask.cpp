// Hypotheses about who sees whom.
#include <algorithm>

#include "harness/explain/catalogue.h"

namespace kv {
namespace {

constexpr uint32_t kSingleKeysMax = 64;  // longest cache in which every single key is suspected

// Sets the visible slots of a row by a rule over slots; PAD, tree and mask tensor apart.
template <class Sees>
void see(const Scene& scene, const RowAt& at, Reading& r, Sees sees) {
  const Sequence& sequence = scene.sequence(at.row);
  const std::vector<uint8_t> tensors = scene.shown_by_tensors(at);
  for (size_t s = 0; s < tensors.size(); ++s) {
    const bool shown = !sequence.slots[s].pad && tensors[s] != 0;
    r.copies[s] = shown && sees(static_cast<int64_t>(s)) ? 1 : 0;
  }
}

/// The slot that the row's window is measured from.
int64_t anchor_of(const Scene& scene, const RowAt& at) {
  const bool open = scene.c().mask.causal == Causal::kNone;
  return open ? query_slot(scene.step().rows[at.row], at.query) : scene.limit(at);
}

bool in_window(const Scene& scene, const RowAt& at, int64_t slot) {
  const Mask& mask = scene.c().mask;
  const int64_t anchor = anchor_of(scene, at);
  return (mask.window_left < 0 || slot >= anchor - mask.window_left) &&
         (mask.window_right < 0 || slot <= anchor + mask.window_right);
}

Hypothesis causal_shift(int64_t by) {
  return {by > 0 ? "causal-plus-one" : "causal-minus-one",
          by > 0 ? "every query also sees the next key (causal limit one too far)"
                 : "no query sees its own key (causal limit one too near)",
          [by](const Scene& scene, const RowAt& at, Reading& r) {
            if (scene.c().mask.causal == Causal::kNone) return;
            const int64_t limit = scene.limit(at) + by;
            see(scene, at, r, [&](int64_t s) { return s <= limit && in_window(scene, at, s); });
          }};
}

Hypothesis window_shift(bool left, int64_t by) {
  return {
      std::string("window-") + (left ? "left" : "right") + (by > 0 ? "-plus-one" : "-minus-one"),
      std::string("the window reaches one key too ") + (by > 0 ? "far" : "short") +
          (left ? " to the left" : " to the right"),
      [left, by](const Scene& scene, const RowAt& at, Reading& r) {
        const Mask& mask = scene.c().mask;
        const int64_t size = left ? mask.window_left : mask.window_right;
        if (size < 0) return;
        const int64_t anchor = anchor_of(scene, at);
        const int64_t edge = left ? anchor - size - by : anchor + size + by;
        const int64_t limit = scene.limit(at);
        see(scene, at, r, [&](int64_t s) {
          const bool side = left ? s >= edge : s <= edge;
          const bool other = left ? mask.window_right < 0 || s <= anchor + mask.window_right
                                  : mask.window_left < 0 || s >= anchor - mask.window_left;
          return side && other && s <= limit;
        });
      }};
}

void whole_masks(std::vector<Hypothesis>& out) {
  out.push_back({"causal-ignored", "every query sees every key (no causal limit)",
                 [](const Scene& scene, const RowAt& at, Reading& r) {
                   see(scene, at, r, [&](int64_t s) { return in_window(scene, at, s); });
                 }});
  out.push_back({"triangle-flipped", "the causal triangle is flipped: queries see only later keys",
                 [](const Scene& scene, const RowAt& at, Reading& r) {
                   if (scene.c().mask.causal == Causal::kNone) return;
                   const int64_t limit = scene.limit(at);
                   see(scene, at, r, [&](int64_t s) { return s >= limit; });
                 }});
  out.push_back({"polarity-inverted",
                 "the mask is inverted: hidden keys are seen, seen ones hidden",
                 [](const Scene& scene, const RowAt& at, Reading& r) {
                   const Sequence& sequence = scene.sequence(at.row);
                   for (size_t s = 0; s < sequence.slots.size(); ++s) {
                     r.copies[s] = !sequence.slots[s].pad && r.copies[s] == 0 ? 1 : 0;
                   }
                 }});
  out.push_back({"other-alignment",
                 "the causal triangle is aligned to the other corner (top left for bottom right)",
                 [](const Scene& scene, const RowAt& at, Reading& r) {
                   const PlannedRow& row = scene.step().rows[at.row];
                   const Causal causal = scene.c().mask.causal;
                   if (causal == Causal::kNone) return;
                   const int64_t limit = causal == Causal::kBottomRight ? int64_t{at.query}
                                                                        : query_slot(row, at.query);
                   see(scene, at, r, [&](int64_t s) { return s <= limit; });
                 }});
  out.push_back({"window-ignored", "the window is ignored",
                 [](const Scene& scene, const RowAt& at, Reading& r) {
                   const int64_t limit = scene.limit(at);
                   see(scene, at, r, [&](int64_t s) { return s <= limit; });
                 }});
  out.push_back(
      {"pad-visible", "PAD slots are seen", [](const Scene& scene, const RowAt& at, Reading& r) {
         const Sequence& sequence = scene.sequence(at.row);
         const int64_t limit = scene.limit(at);
         for (size_t s = 0; s < sequence.slots.size(); ++s) {
           if (sequence.slots[s].pad && static_cast<int64_t>(s) <= limit) r.copies[s] = 1;
         }
       }});
  out.push_back({"page-tail-visible", "slots of the last page beyond the end are seen",
                 [](const Scene& scene, const RowAt& at, Reading& r) {
                   const size_t end = scene.sequence(at.row).slots.size();
                   std::fill(r.copies.begin() + static_cast<ptrdiff_t>(end), r.copies.end(), 1u);
                 }});
  out.push_back({"empty-row-mean", "a row that sees nothing gets the mean of all values",
                 [](const Scene&, const RowAt&, Reading& r) { r.empty_is_mean = true; }});
  out.push_back({"last-query-rule", "every query of a request sees what the last one sees",
                 [](const Scene& scene, const RowAt& at, Reading& r) {
                   RowAt last = at;
                   last.query = scene.step().rows[at.row].queries - 1;
                   r.copies = scene.honest(last).copies;
                 }});
}

// One end of the window is that of another query of the request: computed once for all of them.
void window_of_another_query(std::vector<Hypothesis>& out) {
  for (const bool left : {true, false}) {
    for (const bool last : {true, false}) {
      out.push_back({std::string(left ? "window-start-of-" : "window-end-of-") +
                         (last ? "last" : "first") + "-query",
                     std::string("the window of every query of a request ") +
                         (left ? "starts" : "ends") + " where that of the " +
                         (last ? "last" : "first") + " one does",
                     [left, last](const Scene& scene, const RowAt& at, Reading& r) {
                       const Mask& mask = scene.c().mask;
                       if ((left ? mask.window_left : mask.window_right) < 0) return;
                       const PlannedRow& row = scene.step().rows[at.row];
                       const int64_t own = anchor_of(scene, at);
                       const int64_t other = own - at.query + (last ? row.queries - 1 : 0);
                       const int64_t start = (left ? other : own) - mask.window_left;
                       const int64_t end = (left ? own : other) + mask.window_right;
                       see(scene, at, r, [&](int64_t s) {
                         return (mask.window_left < 0 || s >= start) &&
                                (mask.window_right < 0 || s <= end) && s <= scene.limit(at);
                       });
                     }});
    }
  }
}

/// What a row sees whose own slot is `slot`, by causal limit and window.
void see_from(const Scene& scene, const RowAt& at, int64_t slot, Reading& r) {
  const Mask& mask = scene.c().mask;
  see(scene, at, r, [&](int64_t s) {
    return (mask.causal == Causal::kNone || s <= slot) &&
           (mask.window_left < 0 || s >= slot - mask.window_left) &&
           (mask.window_right < 0 || s <= slot + mask.window_right);
  });
}

// The slot that causal limit and window are measured from is another one.
void other_anchors(std::vector<Hypothesis>& out) {
  for (const bool next : {true, false}) {
    out.push_back({next ? "anchor-of-next-request" : "anchor-of-previous-request",
                   std::string("causal limit and window are measured from the length of the ") +
                       (next ? "next" : "previous") + " request in the batch",
                   [next](const Scene& scene, const RowAt& at, Reading& r) {
                     const auto& rows = scene.step().rows;
                     if (scene.c().mask.causal == Causal::kTopLeft) return;
                     if (next ? at.row + 1 >= rows.size() : at.row == 0) return;
                     const PlannedRow& other = rows[next ? at.row + 1 : at.row - 1];
                     const int64_t shift = int64_t{other.kv_length} - rows[at.row].queries;
                     see_from(scene, at, shift + at.query, r);
                   }});
  }
  out.push_back({"window-from-first-slot",
                 "a query that stands before the first slot measures its window from that slot",
                 [](const Scene& scene, const RowAt& at, Reading& r) {
                   const int64_t anchor = anchor_of(scene, at);
                   if (anchor >= 0 || scene.c().mask.window_right < 0) return;
                   const int64_t end = scene.c().mask.window_right, limit = scene.limit(at);
                   see(scene, at, r, [&](int64_t s) { return s <= end && s <= limit; });
                 }});
}

// The PAD slot that touches what is seen, and no other one.
void nearest_pad(std::vector<Hypothesis>& out) {
  out.push_back({"nearest-pad-visible",
                 "of the PAD slots before the first visible one the last is seen",
                 [](const Scene& scene, const RowAt& at, Reading& r) {
                   const Sequence& sequence = scene.sequence(at.row);
                   const auto first = std::find_if(r.copies.begin(), r.copies.end(),
                                                   [](uint32_t copies) { return copies > 0; });
                   if (first == r.copies.begin() || first == r.copies.end()) return;
                   const auto before = static_cast<size_t>(first - r.copies.begin()) - 1;
                   if (sequence.slots[before].pad) r.copies[before] = 1;
                 }});
}

void edge_keys(std::vector<Hypothesis>& out) {
  const auto edit = [](bool first, uint32_t copies) {
    return [first, copies](const Scene&, const RowAt&, Reading& r) {
      const auto visible = [](uint32_t n) { return n > 0; };
      if (first) {
        const auto at = std::find_if(r.copies.begin(), r.copies.end(), visible);
        if (at != r.copies.end()) *at = copies;
      } else {
        const auto at = std::find_if(r.copies.rbegin(), r.copies.rend(), visible);
        if (at != r.copies.rend()) *at = copies;
      }
    };
  };
  out.push_back({"first-key-dropped", "the first visible key is left out", edit(true, 0)});
  out.push_back({"last-key-dropped", "the last visible key is left out", edit(false, 0)});
  out.push_back({"first-key-twice", "the first visible key counts twice", edit(true, 2)});
  out.push_back({"last-key-twice", "the last visible key counts twice", edit(false, 2)});
}

void single_keys(const Scene& scene, std::vector<Hypothesis>& out) {
  uint32_t longest = 0;
  for (const PlannedRow& row : scene.step().rows) longest = std::max(longest, row.kv_length);
  for (uint32_t s = 0; s < std::min(longest, kSingleKeysMax); ++s) {
    for (const uint32_t copies : {0u, 2u}) {
      const std::string slot = std::to_string(s);
      out.push_back({(copies == 0 ? "key-dropped:" : "key-twice:") + slot,
                     "key " + slot + (copies == 0 ? " is left out" : " counts twice"),
                     [s, copies](const Scene&, const RowAt&, Reading& r) {
                       if (s < r.copies.size() && r.copies[s] == 1) r.copies[s] = copies;
                     }});
    }
  }
}

}  // namespace

void mask_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  out.push_back(causal_shift(1));
  out.push_back(causal_shift(-1));
  for (const bool left : {true, false}) {
    for (const int64_t by : {1, -1}) out.push_back(window_shift(left, by));
  }
  whole_masks(out);
  if (scene.c().mask.window_left >= 0 || scene.c().mask.window_right >= 0) {
    window_of_another_query(out);
  }
  other_anchors(out);
  nearest_pad(out);
  edge_keys(out);
  single_keys(scene, out);
}

}  // namespace kv
