#include "harness/simt/exec/atomic.h"

#include <algorithm>

#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/math/float.h"

namespace kv::simt {
namespace {

using namespace KV_ISA;

template <class T>
T pick(AtomicKind kind, T a, T b) {
  return kind == AtomicKind::kMin ? std::min(a, b) : std::max(a, b);
}

uint64_t half_sum(bool bfloat, uint64_t a, uint64_t b) {
  const auto x = uint32_t(a & 0xffff), y = uint32_t(b & 0xffff);
  if (bfloat) return float_to_bfloat(bits_of(bfloat_value(x) + bfloat_value(y)));
  return float_to_half(bits_of(half_value(x) + half_value(y)));
}

uint64_t sum(AtomicType type, uint64_t a, uint64_t b, bool global) {
  switch (type) {
    case AtomicType::kF32:
      if (global) {
        return flush(canonical(float_of(flush(uint32_t(a))) + float_of(flush(uint32_t(b)))));
      }
      return canonical(float_of(uint32_t(a)) + float_of(uint32_t(b)));
    case AtomicType::kF64:
      return canonical(double_of(a) + double_of(b));
    case AtomicType::kF16:
      return half_sum(false, a, b);
    case AtomicType::kBf16:
      return half_sum(true, a, b);
    case AtomicType::kF16x2:
      return half_sum(false, a, b) | half_sum(false, a >> 16, b >> 16) << 16;
    case AtomicType::kBf16x2:
      return half_sum(true, a, b) | half_sum(true, a >> 16, b >> 16) << 16;
    default:
      return a + b;
  }
}

}  // namespace

uint64_t atomic_result(AtomicKind kind, AtomicType type, uint64_t before, uint64_t a, uint64_t b,
                       bool global) {
  switch (kind) {
    case AtomicKind::kAdd:
      return sum(type, before, a, global);
    case AtomicKind::kMin:
    case AtomicKind::kMax:
      if (type == AtomicType::kS32) {
        return uint32_t(pick(kind, int32_t(before), int32_t(a)));
      }
      if (type == AtomicType::kS64) return uint64_t(pick(kind, int64_t(before), int64_t(a)));
      return pick(kind, before, a);
    case AtomicKind::kIncrement:
      return before >= a ? 0 : before + 1;
    case AtomicKind::kDecrement:
      return before == 0 || before > a ? a : before - 1;
    case AtomicKind::kAnd:
      return before & a;
    case AtomicKind::kOr:
      return before | a;
    case AtomicKind::kXor:
      return before ^ a;
    case AtomicKind::kExchange:
      return a;
    case AtomicKind::kCompareSwap:
      return before == a ? b : before;
  }
  return before;
}

uint64_t atomic_address(Warp& w, const Ins* i, uint32_t lane) {
  const uint32_t operand = i->flags & access_flags::kNoResult ? 0 : 1;
  switch (AddressMode(i->target)) {
    case AddressMode::kConstant:
      return uint64_t(i->imm);
    case AddressMode::kRegister32:
      return uint32_t(slot<uint32_t>(w, i->r[operand])[lane] + uint32_t(i->imm));
    default:
      return slot<uint64_t>(w, i->r[operand])[lane] + uint64_t(i->imm);
  }
}

}  // namespace kv::simt
