#include "harness/simt/exec/lower/flow.h"

namespace kv::simt {

Flow flow_of(const Lowered& lowered) {
  const auto steps = uint32_t(lowered.steps.size());
  std::vector<bool> leads(steps + 1);
  leads[0] = true;
  for (uint32_t k = 0; k < steps; ++k) {
    const Step& s = lowered.steps[k];
    if (s.target >= 0) leads[size_t(s.target)] = true;
    if (s.control) leads[k + 1] = true;
  }
  Flow flow;
  std::vector<uint32_t> block_of(steps);
  for (uint32_t k = 0; k < steps; ++k) {
    if (leads[k]) flow.begin.push_back(k);
    block_of[k] = uint32_t(flow.begin.size()) - 1;
  }
  const size_t blocks = flow.begin.size();
  flow.begin.push_back(steps);
  flow.successors.resize(blocks);
  for (size_t b = 0; b < blocks; ++b) {
    const Step& last = lowered.steps[flow.begin[b + 1] - 1];
    if (last.target >= 0) flow.successors[b].push_back(block_of[size_t(last.target)]);
    if ((!last.control || last.falls_through) && b + 1 < blocks) {
      flow.successors[b].push_back(uint32_t(b) + 1);
    }
  }
  return flow;
}

}  // namespace kv::simt
