#include "harness/gen/draw_exec.h"

#include <algorithm>
#include <map>

namespace kv {
namespace {

constexpr uint32_t kVariantsMax = 256;  // that a plugin may offer
constexpr uint32_t kSplitsMax = 40;     // of one request: each is a block of the grid

/// Slots of the longest request.
uint64_t longest(const Case& c) {
  std::map<RequestId, uint64_t> slots;
  uint64_t most = 1;
  for (const Op& op : c.ops) {
    const auto* step = std::get_if<op::Step>(&op);
    if (step == nullptr) continue;
    for (const op::StepRow& row : step->rows) {
      uint64_t& held = slots[row.request];
      held += uint64_t{row.pad_left} + row.append + row.pad_right;
      most = std::max(most, held);
    }
  }
  return most;
}

/// By its relation to a page, a tile, the longest request: a split for each page, a split that
/// straddles pages, one split less than two, more splits than tiles.
uint32_t draw_split(ChoiceSource& choices, const Case& c) {
  const uint64_t length = longest(c), page = c.pool.page_slots;
  const uint64_t split =
      choices.pick({page, uint64_t{16}, uint64_t{32}, uint64_t{64}, page + 1, uint64_t{1}, length,
                    length - 1, (length + 1) / 2, choices.between(1, length)});
  return static_cast<uint32_t>(std::max({split, length / kSplitsMax, uint64_t{1}}));
}

/// Calls again, or what was captured of the first call; a graph may also be launched only once.
void draw_repeats(ChoiceSource& choices, bool graphs, Exec& exec) {
  struct Calls {
    uint32_t repeat;
    bool graph;
  };
  const auto calls = choices.pick<Calls>({{2, false}, {3, false}, {1, true}, {2, true}});
  exec.graph = calls.graph && graphs;
  exec.repeat = graphs ? calls.repeat : std::max(calls.repeat, 2u);
}

}  // namespace

void draw_exec(ChoiceSource& choices, const Swarm& swarm, std::span<const std::string> variants,
               Case& c) {
  Exec& exec = c.exec;
  if (swarm.schedules) exec.schedule_seed = choices.bits64();
  if (swarm.roundings && choices.one_in(2)) {
    exec.rounding = choices.pick({Rounding::kRandom, Rounding::kUp, Rounding::kDown,
                                  Rounding::kMmaAmpere, Rounding::kMmaHopper});
    exec.rounding_seed = choices.bits64();
  }
  if (swarm.repeats && choices.one_in(3)) draw_repeats(choices, swarm.graphs, exec);
  if (swarm.splits && choices.one_in(2)) exec.split_slots = draw_split(choices, c);
  const uint64_t chosen = choices.below(kVariantsMax);
  const bool forced = choices.one_in(2);
  if (swarm.variants && forced && !variants.empty()) {
    exec.variant = variants[chosen % variants.size()];
  }
  if (swarm.cascades && !c.shape.sinks && choices.one_in(4))
    exec.cascade_slots = draw_split(choices, c);
}

}  // namespace kv
