// Purpose: kernels with a fault of the catalogue, for the tests of explain.
// Contract: simulate() is what a correct plugin returns, but for the rows that the fault changes;
// "" is the correct one. is_named() knows that a member of a family is named with its siblings.
// Example: explain(c, [](const Case& one) { return simulate(one, "causal-plus-one"); }, {});
#pragma once

#include <string>

#include "harness/explain/catalogue.h"
#include "harness/explain/explain.h"
#include "harness/judge/fake_worker.h"

namespace kv {

/// Every row of every step is what it reads after `change`.
inline Observation simulate_change(
    const Case& c, const std::function<void(const Scene&, const RowAt&, Reading&)>& change) {
  Observation o = fake_observation(c);
  for (uint32_t op = 0; op < c.ops.size(); ++op) {
    if (c.shape.value_in_key)  // of which the fake worker knows nothing
      std::erase_if(o.ops[op].pages, [](const PageImage& page) { return page.value; });
    if (o.ops[op].layers.empty()) continue;
    const Scene scene(c, o, op);
    std::vector<LayerResult> layers = o.ops[op].layers;
    for (const RowAt& at : scene.rows()) {
      Reading r = scene.honest(at);
      change(scene, at, r);
      scene.compute(at, r, layers);
    }
    o.ops[op].layers = std::move(layers);
  }
  return o;
}

/// What a kernel with the fault would have returned.
inline Result<Observation> simulate(const Case& c, const std::string& fault) {
  const Scene* of = nullptr;  // whose catalogue `there` is
  std::vector<Hypothesis> there;
  return simulate_change(c, [&](const Scene& scene, const RowAt& at, Reading& r) {
    if (of != &scene) there = hypotheses(scene);
    of = &scene;
    for (const Hypothesis& h : there) {
      if (h.name == fault) h.change(scene, at, r);
    }
  });
}

inline bool is_named(const Named& named, const Hypothesis& h) {
  if (h.family.empty()) return named.name == h.name;
  const std::string prefix = h.family + ":";
  if (!named.name.starts_with(prefix)) return false;
  const std::string sizes = "," + named.name.substr(prefix.size()) + ",";
  return sizes.find("," + h.size + ",") != std::string::npos;
}

}  // namespace kv
