#include "harness/explain/trust.h"

#include "harness/judge/judge.h"

namespace kv {
Result<void> check_modelled(const Case& c) {
  if (c.engine) {
    return unsupported(
        "engine: the history of an engine is not explained by hypotheses about one attention "
        "step; `kverify replay` says what it did wrong");
  }
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
