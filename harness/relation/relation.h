// Purpose: metamorphic relations: what may be changed about a case without changing its results,
// or so that the change of the results is known.
// Contract: the image is a pure function of the case (exec.relation_seed included), itself a lawful
// case without a relation. Results correspond by request, query slot and how often that slot was
// queried before; heads and channels as Image says. Bits must be equal when the plugin promises
// everything in `promises`; otherwise, and for Agreement::kJudged, the image's own verdict decides.
// Example:
//   KV_ASSIGN_OR_RETURN(const std::optional<Image> image, image_of(c));
//   if (image) run(image->c);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "harness/case/case.h"
#include "harness/core/result.h"
#include "harness/gen/choice_source.h"

namespace kv {

struct Image {
  Case c;
  uint32_t head_rotation = 0;   // its KV head h stands for the case's h + head_rotation
  uint32_t value_rotation = 0;  // its channel d stands for the case's d + value_rotation
};

enum class Agreement : uint8_t { kBits, kJudged };

struct Relation {
  std::string_view name;
  std::string_view purpose;  // what it says, in a few words
  std::string_view finds;    // the planted bug that only it kills, or why it is kept
  Agreement agreement = Agreement::kJudged;
  uint32_t promises = 0;  // KV_PROMISE_*
  /// The image gives append what the case gave it, for the same pages: what the cache then holds
  /// must be the same bytes, whatever mask, scale or schedule are, of a deterministic plugin.
  bool same_cache = false;
  /// Turns a copy of the case into the image; false when the relation says nothing of this case.
  bool (*change)(ChoiceSource& choices, Image& image) = nullptr;
};

/// All of them, in a stable order.
std::span<const Relation> relations();
/// nullptr: there is none of that name.
const Relation* find_relation(std::string_view name);

/// The image of a case under the relation that it names; nothing when it names none or when the
/// relation does not apply. An unknown name is bad input.
Result<std::optional<Image>> image_of(const Case& c);

}  // namespace kv
