// Compiled with fast-math, for the test alone.
#include "reference/host_arithmetic_impl.h"

namespace kv::reference {

std::string_view defect_under_fast_math() { return find_arithmetic_defect(); }

}  // namespace kv::reference
