// Asynchronous copies, and matrices from and to shared memory.
#include "harness/simt/exec/async_copy.h"

#include <algorithm>

#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/lower/lowerer.h"

namespace kv::simt {

using ptx::Operand;
using ptx::Space;

/// cp.async.{ca,cg}.shared.global [dst], [src], size{, read size or !ignore}{, policy}.
Result<void> Lowerer::copy_async(const ptx::Instruction& ins) {
  if (ins.modifiers.empty() || ins.modifiers[0] != "async") return unsupported_form(ins, "");
  if (has_modifier(ins, "bulk") || has_modifier(ins, "mbarrier")) return unsupported_form(ins, "");
  if (has_modifier(ins, "commit_group")) {
    step("~cp.async.commit");
    return {};
  }
  if (has_modifier(ins, "wait_all") || has_modifier(ins, "wait_group")) {
    int64_t keep = -1;
    if (has_modifier(ins, "wait_group")) {
      if (ins.operands.size() != 1 || ins.operands[0].kind != Operand::Kind::kImmediate) {
        return unsupported_form(ins, "a number of groups that is not a constant");
      }
      keep = ins.operands[0].immediate;
    }
    step("~cp.async.wait").proto.imm = keep;
    return {};
  }
  if (ins.operands.size() < 3 || ins.operands[2].kind != Operand::Kind::kImmediate) {
    return unsupported_form(ins, "");
  }
  const int64_t bytes = ins.operands[2].immediate;
  if (bytes != 4 && bytes != 8 && bytes != 16) return unsupported_form(ins, "a size of this kind");
  KV_ASSIGN_OR_RETURN(const Address to, address(ins.operands[0], Space::kShared));
  KV_ASSIGN_OR_RETURN(const Address from, address(ins.operands[1], Space::kGlobal));
  uint32_t from_base = from.base;
  int64_t from_offset = from.offset;
  if (from.mode == AddressMode::kConstant) {
    from_base = constant('4', uint64_t(from.offset));
    from_offset = 0;
  }
  if (from.mode == AddressMode::kRegister32 || from_offset != int32_t(from_offset)) {
    return unsupported_form(ins, "a source address of this kind");
  }
  std::vector<uint32_t> sources = {to.mode == AddressMode::kConstant ? constant('4', 0) : to.base,
                                   from_base};
  uint16_t flags = 0;
  const bool hint = has_modifier(ins, "L2::cache_hint");
  if (ins.operands.size() > (hint ? 4u : 3u)) {
    const Operand& o = ins.operands[3];
    const bool predicate = o.kind == Operand::Kind::kRegister && class_of(o.index) == 'p';
    KV_ASSIGN_OR_RETURN(const uint32_t r, source(o, predicate ? 'p' : '2'));
    sources.push_back(r);
    flags = predicate ? copy_flags::kIgnore : copy_flags::kSize;
    const VirtualRegister& v = out_.registers[r];
    if (v.constant && v.value == uint64_t(bytes)) {
      flags = 0;
      sources.pop_back();
    }
  }
  note_width(Space::kShared, uint32_t(bytes));
  note_width(Space::kGlobal, flags & copy_flags::kSize ? 4 : uint32_t(bytes));
  Step& s = step(("~cp.async." + std::to_string(bytes)).c_str());
  s.sources = std::move(sources);
  set_address(s, to);
  s.proto.space = uint8_t(Space::kShared);
  s.proto.target = uint32_t(int32_t(from_offset));
  s.proto.width = uint8_t(bytes);
  s.proto.flags = flags;
  return {};
}

Result<void> Lowerer::load_matrix(const ptx::Instruction& ins) {
  const bool trans = has_modifier(ins, "trans");
  const uint32_t count = has_modifier(ins, "x4") ? 4 : has_modifier(ins, "x2") ? 2 : 1;
  if (!has_modifier(ins, "m8n8") || !has_modifier(ins, "b16") || ins.operands.size() != 2) {
    return unsupported_form(ins, "");
  }
  KV_ASSIGN_OR_RETURN(Address a, address(ins.operands[1], space_of(ins)));
  const Operand& to = ins.operands[0];
  const bool vector = to.kind == Operand::Kind::kVector;
  if ((vector ? to.elements.size() : 1) != count) return unsupported_form(ins, "");
  std::vector<uint32_t> destinations;
  for (uint32_t k = 0; k < count; ++k) {
    KV_ASSIGN_OR_RETURN(const uint32_t r, destination(vector ? to.elements[k] : to, '2'));
    destinations.push_back(r);
  }
  note_width(Space::kShared, 16);
  Step& s = step(("~ldmatrix.x" + std::to_string(count) + (trans ? ".trans" : "")).c_str());
  s.destinations = std::move(destinations);
  s.sources = {a.mode == AddressMode::kConstant ? constant('4', 0) : a.base};
  set_address(s, a);
  s.synchronises = true;
  s.proto.width = 16;
  s.proto.count = uint8_t(count);
  s.proto.flags = trans ? 1 : 0;
  s.proto.extra = uint16_t(AccessKind::kLoad);
  return {};
}

Result<void> Lowerer::store_matrix(const ptx::Instruction& ins) {
  const uint32_t count = has_modifier(ins, "x4") ? 4 : has_modifier(ins, "x2") ? 2 : 1;
  if (!has_modifier(ins, "m8n8") || !has_modifier(ins, "b16") || ins.operands.size() != 2) {
    return unsupported_form(ins, "");
  }
  KV_ASSIGN_OR_RETURN(Address a, address(ins.operands[0], space_of(ins)));
  const Operand& from = ins.operands[1];
  const bool vector = from.kind == Operand::Kind::kVector;
  if ((vector ? from.elements.size() : 1) != count) return unsupported_form(ins, "");
  std::vector<uint32_t> sources = {a.mode == AddressMode::kConstant ? constant('4', 0) : a.base};
  for (uint32_t k = 0; k < count; ++k) {
    KV_ASSIGN_OR_RETURN(const uint32_t r, source(vector ? from.elements[k] : from, '2'));
    sources.push_back(r);
  }
  note_width(Space::kShared, 16);
  Step& s = step("~stmatrix");
  s.sources = std::move(sources);
  set_address(s, a);
  s.synchronises = true;
  s.proto.width = 16;
  s.proto.count = uint8_t(count);
  s.proto.flags = has_modifier(ins, "trans") ? 1 : 0;
  s.proto.extra = uint16_t(AccessKind::kStore);
  return {};
}

}  // namespace kv::simt
