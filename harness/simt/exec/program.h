// Purpose: a kernel as the executor runs it: dense instructions over a small register file.
// Contract: plain data. A register slot is 32 lanes of 4 bytes; 64-bit registers take two slots.
// Constants and special registers are slots too, written when a warp starts. Predicates are 32-bit
// masks in an array of their own.
//
// Every basic block ends in one control instruction (a branch, a return, a barrier or block_end),
// which accounts for the whole block; nothing between is counted or interrupted. A guarded
// instruction stands between guard_begin and guard_end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/simt/ptx/module.h"

namespace kv::simt {

struct Warp;
struct Ins;

/// Executes one instruction and, where the compiler turns the last call into a jump, the ones after
/// it. Returns the next instruction to run, or null when the warp must stop (Warp::stop says why).
using Handler = const Ins* (*)(Warp&, const Ins*);

inline constexpr uint16_t kNoGuard = 0xffff;

struct Ins {
  static constexpr uint32_t kOperands = 14;
  Handler run = nullptr;
  uint16_t r[kOperands] = {};  // destinations, then sources: slots or predicate indices
  uint16_t guard = kNoGuard;   // control instructions only: predicate << 1 | negated
  uint8_t width = 4;           // bytes of one element of memory
  uint8_t count = 1;           // elements of a vector access
  int64_t imm = 0;             // address offset; for control instructions Cost
  uint32_t meta = 0;           // index into Program::meta
  uint32_t target = 0;         // branch: instruction; *.sync: instructions before it in its block
  uint16_t hint = 0;           // of the extent cache
  uint8_t space = 0;           // ptx::Space of a memory access
  uint8_t mode = 0;            // AddressMode, or what the handler wants
  uint16_t flags = 0;
  uint16_t extra = 0;
};
static_assert(sizeof(Ins) == 64);

enum class AddressMode : uint8_t { kRegister64, kRegister32, kConstant };

/// What a control instruction accounts for, in Ins::imm.
struct Cost {
  uint32_t all = 0;        // warp instructions of the block
  uint32_t unguarded = 0;  // of them those that every active lane executes
  static Cost of(const Ins& ins) { return {uint32_t(ins.imm), uint32_t(uint64_t(ins.imm) >> 32)}; }
  int64_t pack() const { return int64_t(uint64_t{unguarded} << 32 | all); }
};

/// How undefined bits of the sources become undefined bits of the destination.
enum class Taint : uint8_t {
  kAll,       // any undefined bit of a lane makes its whole result undefined
  kNone,      // never undefined (lane masks, votes of defined predicates)
  kCopy,      // bit for bit; narrower destinations are cut, wider ones extended with zeros
  kSignCopy,  // as kCopy, the sign bit of the narrow source extends
  kAnd,       // defined zeros hide
  kOr,        // defined ones hide
  kXor,       // union
  kAdd,       // undefined bits spread upwards
  kShl,
  kShr,
  kSar,
  kSelect,   // selp
  kHalves,   // two 16-bit elements, each on its own
  kPermute,  // prmt
  kPack,
  kUnpack,
  kPredicateAnd,
  kPredicateOr,
  kShuffle,
  kMatrix,      // mma: row of A, column of B, element of C
  kMatrixMove,  // movmatrix
  kMemory,      // loads, stores, atomics: handled where memory is
  kSideEffect,  // undefined sources are reported
};

/// What the cold paths need to know about an instruction.
struct Meta {
  const ptx::Instruction* source = nullptr;
  Taint taint = Taint::kAll;
  uint8_t destinations = 0, sources = 0;
  char classes[Ins::kOperands] = {};  // 'p' predicate, '2' 32-bit, '4' 64-bit, '8' 128-bit
  uint16_t source_bits = 32;          // of kCopy and kSignCopy: width of the narrow source
};

struct ConstantSlot {
  uint16_t slot = 0;
  bool wide = false;
  uint64_t value = 0;
};

enum class Special : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneId,
  kWarpId,
  kNwarpId,
  kSmId,
  kNsmId,
  kGridId,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kClock,
  kClock64,
  kGlobalTimer,
  kDynamicSharedBytes,
  kTotalSharedBytes,
  kEnvReg1,
  kEnvReg2,
  kZero,
  kOne,
  kCount,
};

/// All others keep their value for a whole launch.
constexpr bool changes_with_block(Special what) {
  return what == Special::kCtaidX || what == Special::kCtaidY || what == Special::kCtaidZ;
}

struct SpecialSlot {
  uint16_t slot = 0;
  Special what = Special::kZero;
  bool wide = false;
};

struct Program {
  std::string name, demangled;
  std::vector<Ins> code;
  uint32_t entry = 0;  // where blocks start; what is before runs once for each warp of a launch
  std::vector<Meta> meta;
  std::vector<Ins> taint_code;  // made when first needed: a taint step before every instruction
  std::vector<ConstantSlot> constants;
  std::vector<SpecialSlot> specials;
  /// A register that may be read before it is written: which lanes have written it is in predicate
  /// first_mask + k.
  struct Watched {
    uint16_t place = 0;  // slot or predicate
    char cls = '2';
  };
  std::vector<Watched> watched;
  uint32_t first_mask = 0;
  uint32_t slots = 0, predicates = 0;
  uint32_t hints = 0;
  uint32_t static_shared_bytes = 0, dynamic_shared_offset = 0;
  uint32_t local_bytes = 0, frame_bytes = 0;  // for each thread
  uint32_t parameter_bytes = 0;
  uint32_t registers = 0;
  uint32_t shared_granule_shift = 2, global_granule_shift = 2;
  bool shared_chunks = false;  // accesses to whole chunks of shared memory
  bool partial_sync = false;   // named barriers or the like: not every sync is by the whole block
};

}  // namespace kv::simt
