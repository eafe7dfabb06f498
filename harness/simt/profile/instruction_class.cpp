#include "harness/simt/profile/instruction_class.h"

#include <algorithm>

namespace kv::simt::profile {
namespace {

using Class = InstructionClass;

struct Row {
  std::string_view opcode;
  Class c;
};

/// What the opcode alone decides.
constexpr Row kByOpcode[] = {
    {"mma", Class::kMatrix},        {"ex2", Class::kSpecial},     {"lg2", Class::kSpecial},
    {"sin", Class::kSpecial},       {"cos", Class::kSpecial},     {"tanh", Class::kSpecial},
    {"rcp", Class::kSpecial},       {"rsqrt", Class::kSpecial},   {"sqrt", Class::kSpecial},
    {"cvt", Class::kConvert},       {"cvta", Class::kConvert},    {"setp", Class::kCompare},
    {"set", Class::kCompare},       {"selp", Class::kCompare},    {"slct", Class::kCompare},
    {"mov", Class::kMove},          {"prmt", Class::kMove},       {"shfl", Class::kLane},
    {"vote", Class::kLane},         {"match", Class::kLane},      {"redux", Class::kLane},
    {"activemask", Class::kLane},   {"elect", Class::kLane},      {"movmatrix", Class::kLane},
    {"ldmatrix", Class::kShared},   {"stmatrix", Class::kShared}, {"atom", Class::kAtomic},
    {"red", Class::kAtomic},        {"cp", Class::kAsync},        {"bar", Class::kBarrier},
    {"barrier", Class::kBarrier},   {"membar", Class::kBarrier},  {"fence", Class::kBarrier},
    {"bra", Class::kBranch},        {"brx", Class::kBranch},      {"call", Class::kBranch},
    {"ret", Class::kBranch},        {"exit", Class::kBranch},     {"trap", Class::kOther},
    {"nanosleep", Class::kOther},   {"isspacep", Class::kOther},  {"prefetch", Class::kOther},
    {"createpolicy", Class::kOther}};

bool has(const ptx::Instruction& ins, std::string_view modifier) {
  return std::find(ins.modifiers.begin(), ins.modifiers.end(), modifier) != ins.modifiers.end();
}

Class class_of_access(const ptx::Instruction& ins) {
  if (has(ins, "local")) return Class::kLocal;
  if (has(ins, "param") || has(ins, "const")) return Class::kConstant;
  for (std::string_view m : ins.modifiers) {
    if (m.starts_with("shared")) return Class::kShared;
    if (m.starts_with("param")) return Class::kConstant;
  }
  return Class::kGlobal;
}

/// Arithmetic: by the last type that is named.
Class class_of_arithmetic(const ptx::Instruction& ins) {
  for (auto m = ins.modifiers.rbegin(); m != ins.modifiers.rend(); ++m) {
    const auto type = ptx::type_from_name(*m);
    if (!type) continue;
    switch (*type) {
      case ptx::Type::kF32:
      case ptx::Type::kF32x2:
      case ptx::Type::kTf32:
        return Class::kFloat;
      case ptx::Type::kF64:
        return Class::kDouble;
      case ptx::Type::kF16:
      case ptx::Type::kF16x2:
      case ptx::Type::kBf16:
      case ptx::Type::kBf16x2:
        return Class::kHalf;
      default:
        return Class::kInteger;
    }
  }
  return Class::kOther;
}

}  // namespace

const char* class_name(InstructionClass c) {
  static constexpr const char* kNames[kInstructionClasses] = {
      "integer", "float", "half",    "double", "special", "matrix", "convert",
      "compare", "move",  "lane",    "global", "shared",  "local",  "constant",
      "atomic",  "async", "barrier", "branch", "other"};
  return kNames[uint32_t(c)];
}

InstructionClass class_of(const ptx::Instruction& ins) {
  if (ins.opcode == "ld" || ins.opcode == "st" || ins.opcode == "ldu") return class_of_access(ins);
  for (const Row& row : kByOpcode) {
    if (row.opcode == ins.opcode) return row.c;
  }
  return class_of_arithmetic(ins);
}

}  // namespace kv::simt::profile
