// Purpose: a PTX module as read, before anything decides how to execute it.
// Contract: plain data, owned by the Module. Names are resolved to indices by the parser, scoped
// as PTX scopes them; opcodes stay text (base + modifiers) and are given meaning in exec/decode.
// Source: PTX ISA 9.0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/result.h"

namespace kv::simt::ptx {

enum class Space : uint8_t { kGeneric, kReg, kParam, kShared, kGlobal, kLocal, kConst };

/// Fundamental types, sections 5.2.1 to 5.2.5. Packed types are types of their own.
enum class Type : uint8_t {
  kNone, kPred, kB8, kB16, kB32, kB64, kB128, kU8, kU16, kU32, kU64, kS8, kS16, kS32, kS64,
  kF16, kF16x2, kBf16, kBf16x2, kTf32, kF32, kF32x2, kF64, kE4m3, kE5m2, kE4m3x2, kE5m2x2,
};

/// Size of one element in bytes; 0 for kNone and kPred.
uint32_t type_bytes(Type type);
/// The type named by a modifier such as "f32", or nothing.
std::optional<Type> type_from_name(std::string_view name);

/// Where an instruction comes from in the user's source (`-lineinfo`); file empty if unknown.
struct SourceLine {
  std::string_view file;
  uint32_t line = 0;
  std::string_view inlined_at_file;  // outermost inlining site, empty when not inlined
  uint32_t inlined_at_line = 0;
};

struct RegisterDecl {
  std::string name;  // as written, with the scope's suffix removed
  Type type = Type::kB32;
};

/// A module-scope or function-scope variable in shared, global, const or local space.
struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  uint32_t align_bytes = 1;
  uint64_t size_bytes = 0;        // 0 for `.extern .shared x[]` (dynamic)
  bool is_extern = false;
  std::vector<uint8_t> initial;   // little endian, shorter than size means zero-filled; only global/const
  struct Relocation {             // `.global .u64 p = symbol+8;`
    uint64_t offset = 0;
    std::string symbol;
    int64_t addend = 0;
    bool generic = false;         // generic(symbol)
  };
  std::vector<Relocation> relocations;
  SourceLine where;
};

struct Operand {
  enum class Kind : uint8_t {
    kRegister,   // index: into Function::registers; negated: !%p
    kImmediate,  // immediate: the 64 bits as written (0f/0d already their bit patterns; integers two's complement)
    kVector,     // elements
    kAddress,    // base (register / symbol / nothing) + immediate, in brackets
    kSymbol,     // symbol: a variable, kernel parameter or function name used as a value
    kLabel,      // index: instruction index in Function::code
    kSpecial,    // symbol: "%tid.x", "%laneid", ...
    kDiscard,    // "_"
    kPair,       // elements: "%p|%q" of setp/shfl/elect
  };
  enum class ImmediateKind : uint8_t { kInteger, kF32, kF64 };
  Kind kind = Kind::kImmediate;
  bool negated = false;
  ImmediateKind immediate_kind = ImmediateKind::kInteger;
  int32_t index = -1;             // register or label
  int64_t immediate = 0;          // value, or address offset
  std::string_view symbol;        // for kSymbol, kSpecial and symbolic addresses
  std::vector<Operand> elements;  // kVector, kPair
  uint8_t component = 0;          // ".x/.y/.z/.w" applied to a vector register: 1..4, 0 = none
};

struct Instruction {
  std::string_view opcode;                  // "mma"
  std::vector<std::string_view> modifiers;  // {"sync","aligned","m16n8k16",...}
  std::string_view text;                    // the full opcode as written, "mma.sync.aligned..."
  int32_t guard = -1;                       // register index of @%p, or -1
  bool guard_negated = false;
  std::vector<Operand> operands;
  uint32_t ptx_line = 0;                    // 1-based, in the module's text
  SourceLine where;
  uint32_t used_bytes_mask = 0;             // `.pragma "used_bytes_mask N"` before a load, 0 = none
  // call only:
  std::string_view callee;
  std::vector<Operand> call_returns, call_arguments;
};

struct Parameter {
  std::string name;
  Type type = Type::kB8;
  uint32_t align_bytes = 1;
  uint64_t size_bytes = 0;
  uint64_t offset_bytes = 0;  // in the parameter block: running sum rounded up to each alignment
};

/// An `.entry` kernel or a `.func`.
struct Function {
  std::string name;
  bool is_entry = false;
  bool has_body = false;
  std::vector<Parameter> parameters, returns;
  uint64_t parameter_bytes = 0;
  std::vector<RegisterDecl> registers;
  std::vector<Variable> variables;           // function-scope .shared/.local and .param call slots (space kParam)
  std::vector<Instruction> code;
  std::vector<std::string> label_names;      // for reports; parallel to nothing
  uint32_t max_threads[3] = {0, 0, 0};       // .maxntid, 0 = not given
  uint32_t required_threads[3] = {0, 0, 0};  // .reqntid
};

struct Module {
  std::string text;  // string_views above point into this; never moved after parse (held by unique_ptr)
  uint32_t isa_major = 0, isa_minor = 0;
  uint32_t target_sm = 0;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<std::string> files;  // .file table, index as in the text
};

}  // namespace kv::simt::ptx
