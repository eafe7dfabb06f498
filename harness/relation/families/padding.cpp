// Family padding: PAD slots before or behind each prompt, on both sides, in a hole, or a request of
// nothing else.
// Holds: each side within its own bound: real tokens keep their positions and see the same keys,
// and PAD rows are what the plugin declares of them. Bits may differ: tiles begin elsewhere.
// Of: cases whose rows have room for PAD; holes only where a mask tensor can tell of them.
// Kills: none alone; kept because it asks padding of shapes that were drawn without it.
#include <map>

#include "harness/relation/families/list.h"
#include "harness/relation/families/steps.h"

namespace kv::families {
namespace {

/// Where PAD goes: in front of a request's first tokens, behind its last ones, both, or into a hole
/// behind its first ones.
struct Sides {
  bool left = false, right = false, hole = false;
};

/// Steps in which a request appends, in order.
struct Appends {
  const op::StepRow* first = nullptr;
  const op::StepRow* last = nullptr;
};
std::map<RequestId, Appends> appends_of(Case& c) {
  std::map<RequestId, Appends> appends;
  for_each_step(c, [&](op::Step& step) {
    for (const op::StepRow& row : step.rows) {
      if (row.append == 0) continue;
      Appends& of = appends[row.request];
      if (of.first == nullptr) of.first = &row;
      of.last = &row;
    }
  });
  return appends;
}

/// Pads one request's rows as they pass; says how many PAD slots it has added.
class PaddedRequest {
 public:
  PaddedRequest(Appends appends, Sides sides, uint32_t pads)
      : appends_(appends), sides_(sides), pads_(pads) {}

  uint64_t pad(op::StepRow& row) {
    // The queries stay those of real tokens: PAD rows come behind them.
    if (row.append == 0 && row.queries > 0) row.queries += behind_;
    if (row.append > 0) behind_ = 0;
    uint64_t added = 0;
    const bool is_plain = row.queries <= row.append && row.tree_parents.empty();
    if (&row == appends_.first && sides_.left && is_plain) {
      row.pad_left += pads_;
      added += pads_;
    }
    const bool is_hole = &row == appends_.first && &row != appends_.last && sides_.hole;
    const bool is_end = &row == appends_.last && sides_.right;
    if ((is_hole || is_end) && is_plain && row.pad_right == 0) {
      row.pad_right = behind_ = pads_;
      if (row.queries > 0) row.queries += pads_;
      added += pads_;
    }
    return added;
  }

 private:
  Appends appends_;
  Sides sides_;
  uint32_t pads_, behind_ = 0;
};

/// One more request, whose rows are PAD from end to end.
uint64_t add_empty_request(ChoiceSource& choices, Case& c) {
  const RequestId other = stranger(c);
  const auto pads = static_cast<uint32_t>(choices.between(1, 20));
  for (Op& op : c.ops) {
    auto* step = std::get_if<op::Step>(&op);
    if (step == nullptr) continue;
    const auto at = static_cast<ptrdiff_t>(choices.below(step->rows.size() + 1));
    step->rows.insert(step->rows.begin() + at,
                      {.request = other, .pad_left = pads, .queries = pads});
    c.ops.insert(c.ops.begin(), op::Admit{.request = other, .prompt_tokens = 1});
    return pads;
  }
  return 0;
}

bool change(ChoiceSource& choices, Image& image) {
  Case& c = image.c;
  enum class Kind : uint8_t { kLeft, kRight, kBoth, kHole, kWholeRow };
  auto kind = choices.pick({Kind::kLeft, Kind::kRight, Kind::kBoth, Kind::kHole, Kind::kWholeRow});
  // Only a mask with a row for each request can tell of a hole.
  const bool tells_holes = c.mask.encoding != MaskEncoding::kNone && !c.mask.broadcast_batch;
  if (kind == Kind::kHole && !tells_holes) kind = Kind::kBoth;
  uint64_t added = 0;
  if (kind == Kind::kWholeRow) added = add_empty_request(choices, c);
  const Sides sides{.left = kind == Kind::kLeft || kind == Kind::kBoth,
                    .right = kind == Kind::kRight || kind == Kind::kBoth,
                    .hole = kind == Kind::kHole};
  std::map<RequestId, PaddedRequest> requests;
  for (const auto& [request, appends] : appends_of(c))
    requests.emplace(request,
                     PaddedRequest(appends, sides, static_cast<uint32_t>(choices.between(1, 20))));
  for_each_step(c, [&](op::Step& step) {
    for (op::StepRow& row : step.rows) {
      const auto padded = requests.find(row.request);
      if (padded != requests.end()) added += padded->second.pad(row);
    }
  });
  // Each request may need a page more than its PAD slots do.
  if (added > 0) add_pages(c, added + (requests.size() + 1) * c.pool.page_slots);
  return added > 0;
}

}  // namespace

constexpr Relation padding = {
    .name = "padding",
    .purpose =
        "PAD slots before or behind each prompt, on both sides, in holes, or a request of them",
    .finds = "padding against causal alignment in every shape that runs without padding",
    .agreement = Agreement::kJudged,
    .promises = 0,
    .change = change};

}  // namespace kv::families
