// Compiled with -mfma -ffp-contract=fast, for the test alone.
#include "reference/host_arithmetic_impl.h"

namespace kv::reference {

std::string_view defect_under_contraction() { return find_arithmetic_defect(); }

}  // namespace kv::reference
