// Purpose: a PTX module as read, before anything decides how to execute it.
// Contract: plain data, owned by the Module. Names are resolved to indices by the parser, scoped
// as PTX scopes them; opcodes stay text (base + modifiers) and are given meaning in exec/decode.
// Every string_view points into Module::text, Module::names or Module::files and lives as long as
// the Module; every name is resolved, so an executor needs no name table of its own.
// Example:
//   auto module = parse_module(text);                    // ptx/parse.h
//   for (const Function& f : (*module)->functions) if (f.is_entry && f.has_body) decode(f);
// Source: PTX ISA 9.0.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/result.h"

namespace kv::simt::ptx {

enum class Space : uint8_t { kGeneric, kReg, kParam, kShared, kGlobal, kLocal, kConst };

/// Fundamental types, sections 5.2.1 to 5.2.5. Packed types are types of their own.
enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kTf32,
  kF32,
  kF32x2,
  kF64,
  kE4m3,
  kE5m2,
  kE4m3x2,
  kE5m2x2,
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

/// One register. `%r<100>` is expanded to %r0 .. %r99, and `.reg .v4 .f32 v` to four registers
/// v.x .. v.w with consecutive indices, so a register is always one scalar. Names repeat when
/// scopes nest; indices do not.
struct RegisterDecl {
  std::string name;
  Type type = Type::kB32;
};

/// What a name used as a value means. Scoping is already applied.
struct SymbolRef {
  enum class Kind : uint8_t {
    kNone,
    kModuleVariable,    // index into Module::variables
    kFunctionVariable,  // index into Function::variables
    kParameter,         // index into Function::parameters
    kReturn,            // index into Function::returns
    kFunction,          // index into Module::functions
  };
  Kind kind = Kind::kNone;
  int32_t index = -1;
};

/// A module-scope or function-scope variable in shared, global, const or local space.
/// The name is unique within its function: where scopes reuse one (`param0` of every call), later
/// ones read `param0#2`, `param0#3`, in the operands as well.
struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  uint32_t align_bytes = 1;
  uint64_t size_bytes = 0;  // 0 for `.extern .shared x[]` (dynamic)
  bool is_extern = false;
  std::vector<uint8_t>
      initial;         // little endian, shorter than size means zero-filled; only global/const
  struct Relocation {  // `.global .u64 p = symbol+8;`
    uint64_t offset = 0;
    std::string symbol;
    int64_t addend = 0;
    bool generic = false;  // generic(symbol)
    uint32_t bytes = 8;    // low bytes of the address stored (packed structs: one by one)
    SymbolRef target;      // what `symbol` means
  };
  std::vector<Relocation> relocations;
  SourceLine where;
};

struct Operand {
  enum class Kind : uint8_t {
    kRegister,   // index: into Function::registers; negated: !%p
    kImmediate,  // immediate: the 64 bits as written (0f/0d already their bit patterns; integers
                 // two's complement)
    kVector,     // elements
    kAddress,    // base (register / symbol / nothing) + immediate, in brackets
    kSymbol,     // symbol: a variable, kernel parameter or function name used as a value
    kLabel,      // index: instruction index in Function::code
    kSpecial,    // symbol: "%tid.x", "%laneid", ...
    kDiscard,    // "_"
    kPair,       // elements: "%p|%q" of setp/shfl/elect
  };
  enum class ImmediateKind : uint8_t { kInteger, kF32, kF64 };
  // A name of a vector register stands for a kVector of its scalar registers, `v.x` for one of
  // them. kSymbol: `immediate` is the addend of `symbol+8`. kAddress: `elements` holds what follows
  // a comma inside the brackets (tensor coordinates). The table operand of brx.idx is a kVector of
  // kLabel. WARP_SZ is the immediate 32.
  Kind kind = Kind::kImmediate;
  bool negated = false;
  ImmediateKind immediate_kind = ImmediateKind::kInteger;
  int32_t index = -1;             // register or label
  int64_t immediate = 0;          // value, or address offset
  std::string_view symbol;        // for kSymbol, kSpecial and symbolic addresses
  SymbolRef symbol_ref;           // for kSymbol and symbolic addresses: what `symbol` means
  std::vector<Operand> elements;  // kVector, kPair
  uint8_t component = 0;          // always 0: components are resolved to scalar registers
};

struct Instruction {
  std::string_view opcode;                  // "mma"
  std::vector<std::string_view> modifiers;  // {"sync","aligned","m16n8k16",...}
  std::string_view text;                    // the full opcode as written, "mma.sync.aligned..."
  int32_t guard = -1;                       // register index of @%p, or -1
  bool guard_negated = false;
  std::vector<Operand> operands;
  uint32_t ptx_line = 0;  // 1-based, in the module's text
  SourceLine where;
  uint32_t used_bytes_mask = 0;  // `.pragma "used_bytes_mask N"` before a load, 0 = none
  bool cut_to_32_bits = false;   // a planted fault (mutate/): the 64-bit result loses its high half
  // call only (`operands` is then empty, or holds the register of an indirect call):
  std::string_view callee;
  SymbolRef callee_ref;  // kFunction, or kNone for an indirect call
  std::vector<Operand> call_returns, call_arguments;
};

struct Parameter {
  std::string name;
  Type type = Type::kB8;
  uint32_t align_bytes = 1;
  uint64_t size_bytes = 0;
  uint64_t offset_bytes = 0;  // in the parameter block: running sum rounded up to each alignment
};

/// An `.entry` kernel or a `.func`. Code never runs off its end: where the text lets it, a `ret` is
/// appended (ptx_line of the closing brace), and a label at the end points to it.
struct Function {
  std::string name;
  bool is_entry = false;
  bool has_body = false;
  std::vector<Parameter> parameters, returns;
  uint64_t parameter_bytes = 0;
  std::vector<RegisterDecl> registers;
  std::vector<Variable>
      variables;  // function-scope .shared/.local and .param call slots (space kParam)
  std::vector<Instruction> code;
  std::vector<std::string> label_names;      // for reports, in order of definition
  std::vector<uint32_t> label_targets;       // parallel to label_names: instruction index
  uint32_t max_threads[3] = {0, 0, 0};       // .maxntid, 0 = not given
  uint32_t required_threads[3] = {0, 0, 0};  // .reqntid
};

struct Module {
  std::string
      text;  // string_views above point into this; never moved after parse (held by unique_ptr)
  uint32_t isa_major = 0, isa_minor = 0;
  uint32_t target_sm = 0;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<std::string> files;  // .file table, index as in the text
  std::deque<std::string> names;   // names made by the parser (`param0#2`); never moved
};

}  // namespace kv::simt::ptx
