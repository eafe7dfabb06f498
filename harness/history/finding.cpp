#include "harness/history/finding.h"

namespace kv {

std::string_view check_name(CheckClass check) {
  switch (check) {
    case CheckClass::kDevice:
      return "device";
    case CheckClass::kSnapshot:
      return "snapshot";
    case CheckClass::kReferences:
      return "reference counts";
    case CheckClass::kPartition:
      return "partition";
    case CheckClass::kWriteSet:
      return "write set";
    case CheckClass::kLengths:
      return "lengths";
    case CheckClass::kFence:
      return "fence";
    case CheckClass::kIndex:
      return "index";
    case CheckClass::kProvenance:
      return "provenance";
    case CheckClass::kAtomicity:
      return "atomicity";
    case CheckClass::kAnswer:
      return "answer";
    case CheckClass::kProgress:
      return "progress";
    case CheckClass::kLeak:
      return "leak";
    case CheckClass::kValues:
      return "values";
    case CheckClass::kEcho:
      return "echo";
    case CheckClass::kUnsupported:
      return "unsupported";
  }
  return "?";
}

}  // namespace kv
