#include "harness/relation/relation.h"

#include <algorithm>
#include <string>

#include "harness/case/timeline.h"
#include "harness/relation/families/list.h"

namespace kv {

std::span<const Relation> relations() {
#define KV_COPY(family) families::family,
  static const Relation all[] = {KV_FAMILIES(KV_COPY)};
#undef KV_COPY
  return all;
}

const Relation* find_relation(std::string_view name) {
  const auto all = relations();
  const auto found =
      std::find_if(all.begin(), all.end(), [name](const Relation& r) { return r.name == name; });
  return found == all.end() ? nullptr : &*found;
}

Result<std::optional<Image>> image_of(const Case& c) {
  if (c.exec.relation.empty()) return std::optional<Image>{};
  const Relation* relation = find_relation(c.exec.relation);
  if (relation == nullptr)
    return bad_input("exec.relation: expected the name of a relation, got \"" + c.exec.relation +
                     "\"");
  Image image{.c = c};
  image.c.exec.relation.clear();
  image.c.exec.relation_seed = 0;
  image.c.data.digest.reset();
  PhiloxSource choices(c.exec.relation_seed, 0);
  if (!relation->change(choices, image)) return std::optional<Image>{};
  if (!Timeline::create(image.c).ok()) return std::optional<Image>{};
  return std::optional(std::move(image));
}

}  // namespace kv
