#include "harness/relation/relation.h"

#include <algorithm>
#include <string>
#include <vector>

#include "harness/case/timeline.h"
#include "harness/relation/families.h"

namespace kv {

std::span<const Relation> relations() {
  static const std::vector<Relation> all = [] {
    std::vector<Relation> list;
    for (const auto family : {pool_relations(), batch_relations(), data_relations()})
      list.insert(list.end(), family.begin(), family.end());
    return list;
  }();
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
