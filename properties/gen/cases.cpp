#include "properties/gen/cases.h"

#include <functional>
#include <ostream>
#include <vector>

#include "harness/case/json.h"
#include "harness/gen/draw.h"
#include "harness/gen/draw_history.h"
#include "harness/relation/draw_related.h"

namespace kv {

void showValue(const Case& c, std::ostream& out) { out << case_to_json(c); }

namespace props {
namespace {

// A long case takes about 150 choices; RapidCheck's sizes end at 100.
constexpr int kChoicesPerSize = 2;
constexpr int kChoicesPerSizeOfHistory = 10;  // 60 operations
constexpr int kChoicesPerSizeOfFamily = 12;   // several draws, up to one with an image

using Drawer = std::function<Case(ChoiceSource&)>;

rc::Gen<Case> drawn_by(const Drawer& drawer, int choices_per_size = kChoicesPerSize) {
  return rc::gen::withSize([drawer, choices_per_size](int size) {
    // Only the list shrinks: shrinking each number as well takes minutes and simplifies little
    // more.
    const auto choice = rc::gen::noShrink(rc::gen::inRange<uint64_t>(0, uint64_t{1} << 32));
    const auto list =
        rc::gen::resize(choices_per_size * size, rc::gen::container<std::vector<uint64_t>>(choice));
    return rc::gen::map(list, [drawer](std::vector<uint64_t> choices) {
      ListSource source(std::move(choices));
      return drawer(source);
    });
  });
}

}  // namespace

rc::Gen<Case> cases() {
  return drawn_by([](ChoiceSource& choices) { return draw(choices, {}); });
}
rc::Gen<Case> cases_of(const Relation& relation) {
  return drawn_by(
      [&relation](ChoiceSource& choices) { return draw_of_family(choices, relation, {}); },
      kChoicesPerSizeOfFamily);
}
rc::Gen<Case> histories() {
  return drawn_by([](ChoiceSource& choices) { return draw_history(choices, {}); },
                  kChoicesPerSizeOfHistory);
}

}  // namespace props
}  // namespace kv
