// Purpose: the faults that attention code is known to have, each as a change of what is read.
// Contract: a hypothesis changes the honest reading of a row; where it has nothing to change it
// leaves it alone. hypotheses(scene) lists those that change anything in this scene, always in the
// same order; a family (keys dropped, pages mistaken) is listed once for each of its members.
// Source: public reports of faults in attention and cache code, by what is read wrongly.
// Example: for (const Hypothesis& h : hypotheses(scene)) h.change(scene, at, reading);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/explain/reading.h"

namespace kv {

struct Hypothesis {
  std::string name;      // stable: "causal-plus-one", "key-dropped:3"
  std::string sentence;  // completes "the output is what attention gives when ..."
  std::function<void(const Scene&, const RowAt&, Reading&)> change;
};

std::vector<Hypothesis> hypotheses(const Scene& scene);

// By what they change; appended to `out`.
void mask_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
void place_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
/// Sizes of tiles and splits that kernels have, and the one that the case asks for; ascending.
std::vector<uint32_t> split_sizes(const Scene& scene);
void number_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
void head_input_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
void format_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);

}  // namespace kv
