#include "harness/judge/verdict.h"

namespace kv {

const char* stage_name(Stage stage) {
  switch (stage) {
    case Stage::kDevice:
      return "device";
    case Stage::kContract:
      return "contract";
    case Stage::kStructure:
      return "structure";
    case Stage::kProvenance:
      return "provenance";
    case Stage::kExact:
      return "exact";
    case Stage::kInterval:
      return "interval";
    case Stage::kMetamorphic:
      return "metamorphic";
  }
  return "?";
}

}  // namespace kv
