#include "harness/gen/draw_operations.h"

#include <algorithm>
#include <vector>

#include "harness/case/pages.h"
#include "harness/gen/lengths.h"

namespace kv {
namespace {

constexpr uint32_t kTreeTokensMax = 48;
constexpr uint32_t kQueriesBeyondMax = 3;  // query rows that stand before the first slot

// A live request.
struct Live {
  RequestId request;
  uint32_t slots = 0;
  uint32_t real_tokens = 0;
  uint32_t prompt_left = 0;  // then it decodes, for as long as it lives
  bool closed = false;       // ends with PAD: real tokens behind it would make a hole
  uint32_t pages = 0;
};

class Operations {
 public:
  Operations(ChoiceSource& choices, const Swarm& swarm, const DrawLimits& limits, Case& c)
      : choices_(choices), swarm_(swarm), limits_(limits), case_(c), budget_(swarm.budget) {
    const Shape& s = c.shape;
    cost_unit_ = uint64_t{256} * s.query_heads * (s.head_dim_k + s.head_dim_v) * s.layers;
    // The longest cache that one tile of query rows may see for half of the budget.
    longest_ = static_cast<uint32_t>(std::clamp<uint64_t>(budget_ / 2 / cost_unit_ * 16, 16, 2048));
    longest_ = std::min(longest_, limits.slots);
  }

  void draw() {
    choices_.enter(Part::kOperation);
    admit();
    const auto steps = choices_.between(1, limits_.steps);
    for (uint64_t i = 0; i < steps && budget_ > 0; ++i) {
      choices_.enter(Part::kOperation);
      if (swarm_.batches && admitted_ < limits_.requests && choices_.one_in(2)) admit();
      if (live_.empty()) admit();
      step();
      if (swarm_.cancels && choices_.one_in(3)) leave();
    }
    if (!attended_) attend_once();
    if (!live_.empty() && choices_.one_in(2)) leave();
    draw_page_count();
  }

 private:
  uint64_t page_slots() const { return case_.pool.page_slots; }

  void admit() {
    op::Admit admit{.request = RequestId(admitted_)};
    admit.prompt_tokens = draw_length(choices_, page_slots(), longest_);
    if (swarm_.prefixes && admitted_ > 0 && choices_.one_in(2)) {
      admit.prefix_of = RequestId(static_cast<uint32_t>(choices_.below(admitted_)));
      admit.prefix_tokens = draw_part(choices_, page_slots(), admit.prompt_tokens);
      admit.side_input = choices_.one_in(4) ? 1 : 0;
    }
    if (swarm_.offsets) {
      admit.position_offset = choices_.pick<int64_t>({0, 1, 1000, (int64_t{1} << 31) - 8});
    }
    live_.push_back(
        {.request = admit.request, .prompt_left = static_cast<uint32_t>(admit.prompt_tokens)});
    ++admitted_;
    case_.ops.emplace_back(admit);
  }

  // Some of the live requests, starting anywhere: batch slots are no identity.
  void step() {
    op::Step step;
    const uint64_t count =
        swarm_.batches ? choices_.between(1, live_.size()) : std::min<uint64_t>(1, live_.size());
    const uint64_t start = choices_.below(live_.size());
    for (uint64_t i = 0; i < count; ++i) {
      step.rows.push_back(row(live_[(start + i) % live_.size()]));
    }
    case_.ops.emplace_back(std::move(step));
    note_pages();
  }

  op::StepRow row(Live& live) {
    op::StepRow row{.request = live.request};
    const bool may_append = !live.closed && live.slots < longest_;
    // An empty request may attend, too: over no keys at all.
    const bool skip = swarm_.attend_only && choices_.one_in(live.slots > 0 ? 4 : 16);
    if (may_append && !skip) append(live, row);
    if (swarm_.append_only && row.append > 0 && choices_.one_in(5)) return row;
    row.queries = queries(live, row);
    spend(live, row.queries);
    return row;
  }

  void append(Live& live, op::StepRow& row) {
    // A verify step proposes several tokens.
    const uint32_t usual = swarm_.trees && live.prompt_left == 0
                               ? static_cast<uint32_t>(choices_.between(1, 8))
                               : std::max(live.prompt_left, 1u);
    const uint32_t most = std::min(usual, longest_ - live.slots);
    row.append =
        swarm_.chunks ? static_cast<uint32_t>(draw_part(choices_, page_slots(), most)) : most;
    if (swarm_.padding) pad(live, row);
    live.prompt_left -= std::min(live.prompt_left, row.append);
    live.real_tokens += row.append;
    live.slots += row.pad_left + row.append + row.pad_right;
    const bool holes =
        swarm_.holes && case_.mask.encoding != MaskEncoding::kNone && !case_.mask.broadcast_batch;
    live.closed = row.pad_right > 0 && !holes;
    if (swarm_.trees && row.append > 1 && row.append <= kTreeTokensMax && choices_.one_in(2)) {
      tree(row);
    }
  }

  // Any forest: the parent of a token is an earlier one, or the root.
  void tree(op::StepRow& row) {
    for (uint32_t i = 0; i < row.append; ++i) {
      row.tree_parents.push_back(static_cast<int32_t>(choices_.below(i + 1)) - 1);
    }
  }

  // To the left only before the first real token; to the right for good.
  void pad(const Live& live, op::StepRow& row) {
    uint32_t room = limits_.slots - live.slots - row.append;
    const auto some = [&] {
      const auto wanted = choices_.pick<uint64_t>({1, 2, page_slots(), page_slots() + 1});
      const auto pads = static_cast<uint32_t>(std::min<uint64_t>(wanted, room));
      room -= pads;
      return pads;
    };
    const bool left = live.real_tokens == 0 && choices_.one_in(2);
    if (left && swarm_.padding_left) row.pad_left = some();
    const bool right = choices_.one_in(4);
    if (right && swarm_.padding_right) row.pad_right = some();
    if (row.pad_left > 0 && choices_.one_in(8)) row.append = 0;  // nothing but PAD
  }

  uint32_t queries(const Live& live, const op::StepRow& row) {
    const uint64_t appended = uint64_t{row.pad_left} + row.append + row.pad_right;
    uint64_t wanted = std::max<uint64_t>(appended, 1);
    if (swarm_.odd_queries) {
      wanted = choices_.pick({wanted, uint64_t{1}, wanted - 1, wanted + 1, uint64_t{live.slots},
                              choices_.between(1, 8)});
    }
    // More rows than slots are lawful: the first ones see nothing.
    const bool beyond = swarm_.empty_rows && choices_.one_in(3);
    const uint64_t most =
        beyond ? live.slots + choices_.between(1, kQueriesBeyondMax) : uint64_t{live.slots};
    if (beyond && choices_.one_in(2)) wanted = most;
    return static_cast<uint32_t>(
        std::min({wanted, most, affordable(live), uint64_t{limits_.queries}}));
  }

  // Query rows that the budget still pays for, at least one tile.
  uint64_t affordable(const Live& live) const {
    const uint64_t tile_cost = cost_unit_ * (live.slots / 16 + 1);
    return 16 * std::max<uint64_t>(1, budget_ / tile_cost);
  }

  void spend(const Live& live, uint32_t queries) {
    if (queries == 0) return;
    attended_ = true;
    const uint64_t cost = cost_unit_ * (live.slots / 16 + 1) * ((queries + 15) / 16);
    budget_ -= std::min(budget_, cost);
  }

  void leave() {
    const uint64_t index = choices_.below(live_.size());
    const RequestId request = live_[index].request;
    if (choices_.one_in(2)) {
      case_.ops.emplace_back(op::Cancel{request});
    } else {
      case_.ops.emplace_back(op::Finish{request});
    }
    pages_held_ -= live_[index].pages;
    live_.erase(live_.begin() + static_cast<ptrdiff_t>(index));
  }

  // A case without an output would say nothing.
  void attend_once() {
    if (live_.empty()) admit();
    Live& live = live_.front();
    op::StepRow row{.request = live.request, .queries = 1};
    if (live.slots == 0) {
      row.append = 1;
      live.slots = live.real_tokens = 1;
    }
    case_.ops.emplace_back(op::Step{.rows = {row}});
    note_pages();
  }

  void note_pages() {
    pages_held_ = 0;
    for (Live& live : live_) {
      live.pages = static_cast<uint32_t>(pages_for(live.slots, page_slots()));
      pages_held_ += live.pages;
    }
    pages_peak_ = std::max(pages_peak_, pages_held_);
  }

  // The need exactly: every page is recycled as soon as possible; or with room to spare.
  void draw_page_count() {
    const uint32_t need = std::max<uint32_t>(pages_peak_, 1);
    const uint32_t slack = swarm_.slack ? choices_.pick<uint32_t>({0, 1, need, 3}) : 0;
    case_.pool.page_count = need + slack;
    // Each page takes 4 GiB of addresses, for K and V of each layer.
    constexpr uint32_t kFarPagesMax = 128;
    if (case_.pool.order == PageOrder::kFarApart && case_.pool.page_count > kFarPagesMax) {
      case_.pool.order = PageOrder::kShuffled;
    }
  }

  ChoiceSource& choices_;
  const Swarm& swarm_;
  const DrawLimits& limits_;
  Case& case_;
  uint64_t budget_ = 0;
  uint64_t cost_unit_ = 0;  // of 16 query rows over 16 slots
  uint32_t longest_ = 0;
  uint32_t admitted_ = 0;
  std::vector<Live> live_;
  uint32_t pages_held_ = 0, pages_peak_ = 0;
  bool attended_ = false;
};

}  // namespace

void draw_operations(ChoiceSource& choices, const Swarm& swarm, const DrawLimits& limits, Case& c) {
  Operations(choices, swarm, limits, c).draw();
}

}  // namespace kv
