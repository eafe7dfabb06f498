#include "harness/simt/programs_test/program.h"

namespace kv::simt::programs {

std::vector<Program>& programs() {
  static std::vector<Program> list;
  return list;
}

}  // namespace kv::simt::programs
