#include "harness/explain/catalogue.h"

#include <algorithm>

#include "reference/elementary.h"

namespace kv {

double log_of(double x) {
  constexpr double kLeast = 0x1p-1000;  // of a split that is far below the others
  return x >= 1 ? reference::log_at_least_one(x)
                : -reference::log_at_least_one(1 / std::max(x, kLeast));
}

Hypothesis of_family(const std::string& family, const std::string& size, std::string sentence,
                     std::function<void(const Scene&, const RowAt&, Reading&)> change,
                     const std::string& variant) {
  std::string name = family + ":" + size;
  if (!variant.empty()) name += "/" + variant;
  return {std::move(name), std::move(sentence), std::move(change), family, size};
}

std::vector<uint32_t> split_sizes(const Scene& scene) {
  std::vector<uint32_t> sizes = {16, 32, 64, 128, 256, 512};
  const uint32_t own = scene.c().exec.split_slots;
  const auto at = std::lower_bound(sizes.begin(), sizes.end(), own);
  if (own > 0 && (at == sizes.end() || *at != own)) sizes.insert(at, own);
  return sizes;
}

std::vector<Hypothesis> hypotheses(const Scene& scene) {
  std::vector<Hypothesis> out;
  mask_hypotheses(scene, out);
  tensor_hypotheses(scene, out);
  place_hypotheses(scene, out);
  number_hypotheses(scene, out);
  lse_hypotheses(scene, out);
  split_hypotheses(scene, out);
  tile_hypotheses(out);
  state_hypotheses(scene, out);
  head_input_hypotheses(scene, out);
  format_hypotheses(scene, out);
  fitted_hypotheses(scene, out);
  return out;
}

}  // namespace kv
