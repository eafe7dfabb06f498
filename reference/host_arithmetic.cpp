#include "reference/host_arithmetic.h"

#include "reference/host_arithmetic_impl.h"

namespace kv::reference {

std::string_view host_arithmetic_defect() { return find_arithmetic_defect(); }

}  // namespace kv::reference
