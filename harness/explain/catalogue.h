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

/// Members of a family differ in a size alone (of tiles, of splits, of a threshold). Those that no
/// case tells apart are one fault of which the size is not known: they are printed as one.
struct Hypothesis {
  std::string name;      // stable: "causal-plus-one", "key-dropped:3"
  std::string sentence;  // completes "the output is what attention gives when ..."; of a family
                         // with "{}" for its sizes
  std::function<void(const Scene&, const RowAt&, Reading&)> change;
  std::string family = {}, size = {};  // "" of one that stands alone
  /// A number of it was chosen so that it contains what this scene shows: that it does is no
  /// evidence yet.
  bool fitted = false;
  /// Of what is made of others (combined.h): their names, and the kind of rows that alone have it.
  std::vector<std::string> parts = {};
  std::string kind = {};
};

/// A member of a family by its size; where several share it, `variant` tells them apart.
Hypothesis of_family(const std::string& family, const std::string& size, std::string sentence,
                     std::function<void(const Scene&, const RowAt&, Reading&)> change,
                     const std::string& variant = "");

std::vector<Hypothesis> hypotheses(const Scene& scene);

/// Natural logarithm of a positive number.
double log_of(double x);

// By what they change; appended to `out`.
void mask_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
void place_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
/// Sizes of splits that kernels have, and the one that the case asks for; ascending.
std::vector<uint32_t> split_sizes(const Scene& scene);
inline constexpr uint32_t kTileSizes[] = {16, 32, 64, 128};
/// Rows that kernels compute side by side; the first is all of a request.
inline constexpr QueryTile kQueryTiles[] = {{0}, {1}, {2}, {4}, {8}, {16}, {32}, {64}};
void number_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
void lse_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
void split_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
void tile_hypotheses(std::vector<Hypothesis>& out);
void state_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
void tensor_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
void fitted_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
void head_input_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);
void format_hypotheses(const Scene& scene, std::vector<Hypothesis>& out);

}  // namespace kv
