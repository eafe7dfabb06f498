// Family census: q = 0 and V codes the position.
// Holds: O read back as a set is exactly the set of visible keys, found without the reference's
// masks (census.h); and each side within its own bound.
// Of: designed data of another design.
// Kills: none alone; kept because it alone would find a fault of the reference's own masks.
#include "harness/relation/families/designed.h"
#include "harness/relation/families/list.h"

namespace kv::families {
namespace {

bool change(ChoiceSource&, Image& image) { return as_design(image.c, Design::kCensus); }

}  // namespace

constexpr Relation census = {
    .name = "census",
    .purpose = "q = 0 and V codes the position: the output is read back as the visible set",
    .finds = "a fault of the reference's own masks: this check uses none of it",
    .agreement = Agreement::kJudged,
    .promises = 0,
    .change = change};

}  // namespace kv::families
