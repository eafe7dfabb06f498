// Family constant_value: V is 1.
// Holds: O is 1 within its bound, whatever Q and K are: weights sum to one.
// Of: designed data of another design.
// Kills: none alone; kept because weights that do not sum to one show whatever the design hides.
#include "harness/relation/families/designed.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource&, Image& image) { return as_design(image.c, Design::kConstantValue); }

}  // namespace

constexpr Relation constant_value = {
    .name = "constant_value",
    .purpose = "V is 1, so O is 1",
    .finds = "weights that do not sum to one, whatever else the design hides",
    .agreement = Agreement::kJudged,
    .promises = 0,
    .change = change};

}  // namespace kv::families
