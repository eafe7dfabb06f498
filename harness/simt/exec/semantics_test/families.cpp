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

}  // namespace kv::simt::semantics
