#include <fstream>

#include "harness/core/check.h"
#include "harness/simt/exec/semantics_test/form.h"

namespace kv::simt::semantics {

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"Integer", integer_forms},
      {"Bit", bit_forms},
      {"Compare", compare_forms},
      {"Move", move_forms},
      {"Float", float_forms},
      {"Half", half_forms},
      {"Approximate", approximate_forms},
      {"ConvertInteger", convert_integer_forms},
      {"ConvertFloat", convert_float_forms},
      {"Memory", memory_forms},
      {"Atomic", atomic_forms},
      {"Warp", warp_forms},
      {"Matrix", matrix_forms},
      {"Async", async_forms},
      {"Control", control_forms},
  };
  return all;
}

const std::set<std::string>& unsupported() {
  static const std::set<std::string> known = [] {
    std::ifstream file(KV_UNSUPPORTED_LIST);
    KV_CHECK(file.is_open(), KV_UNSUPPORTED_LIST);
    std::set<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.insert(line);
    return lines;
  }();
  return known;
}

}  // namespace kv::simt::semantics
