#include "harness/explain/trust.h"

#include "harness/judge/judge.h"

namespace kv {
namespace {

bool has_tree(const Case& c) {
  for (const Op& operation : c.ops) {
    const auto* step = std::get_if<op::Step>(&operation);
    if (step == nullptr) continue;
    for (const op::StepRow& row : step->rows) {
      if (!row.tree_parents.empty()) return true;
    }
  }
  return false;
}

}  // namespace

Result<void> check_modelled(const Case& c) {
  const auto refuse = [](const std::string& what) {
    return unsupported(
        what +
        ": no hypothesis reads them, so that no answer could be trusted; the smaller "
        "case of `kverify minimize` may do without them");
  };
  if (c.engine) {
    return unsupported(
        "engine: the history of an engine is not explained by hypotheses about one attention "
        "step; `kverify replay` says what it did wrong");
  }
  if (c.mask.encoding != MaskEncoding::kNone) return refuse("mask.encoding: mask tensors");
  if (has_tree(c)) return refuse("tree_parents: trees of drafted tokens");
  return {};
}

std::string honest_defect(const Case& c, const Observation& seen, uint32_t op_index,
                          const Scene& scene) {
  // What a declared rounding of P gives (B2) may lie outside of what attention itself gives.
  Judge judge(c, {.profile_work = 0});
  judge.begin(seen.plugin);
  for (uint32_t i = 0; i < op_index; ++i) judge.add(seen.ops.at(i));
  OpObservation step = seen.ops.at(op_index);
  step.repeat_differences.clear();
  for (const RowAt& at : scene.rows()) scene.compute(at, scene.honest(at), step.layers);
  judge.add(step);
  return judge.decided() ? judge.finish({}).message : "";
}

}  // namespace kv
