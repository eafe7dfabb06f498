#include "harness/simt/ptx/print.h"

#include <algorithm>
#include <cstdio>

namespace kv::simt::ptx {
namespace {

class Printer {
 public:
  explicit Printer(const Function& function) : function_(function) {}

  std::string run(const Instruction& ins) {
    if (ins.guard >= 0) {
      text_ += ins.guard_negated ? "@!" : "@";
      text_ += name_of(ins.guard) + " ";
    }
    text_ += ins.opcode;
    for (std::string_view m : ins.modifiers) text_.append(".").append(m);
    if (ins.opcode == "call") {
      call(ins);
    } else {
      list(ins.operands, " ");
    }
    return text_ + ";";
  }

 private:
  const std::string& name_of(int32_t index) { return function_.registers[size_t(index)].name; }

  void list(const std::vector<Operand>& operands, const char* before) {
    for (const Operand& o : operands) {
      text_ += before;
      operand(o);
      before = ", ";
    }
  }

  void call(const Instruction& ins) {
    text_ += " ";
    if (!ins.call_returns.empty()) {
      list(ins.call_returns, "(");
      text_ += "), ";
    }
    text_ += ins.callee;
    if (!ins.call_arguments.empty()) {
      list(ins.call_arguments, ", (");
      text_ += ")";
    }
  }

  void operand(const Operand& o) {
    if (o.negated) text_ += "!";
    switch (o.kind) {
      case Operand::Kind::kRegister:
        text_ += name_of(o.index);
        break;
      case Operand::Kind::kImmediate:
        number(o);
        break;
      case Operand::Kind::kVector:
        text_ += "{";
        list(o.elements, "");
        text_ += "}";
        break;
      case Operand::Kind::kAddress:
        address(o);
        break;
      case Operand::Kind::kSymbol:
        text_ += o.symbol;
        if (o.immediate) addend(o.immediate);
        break;
      case Operand::Kind::kLabel:
        label(o.index);
        break;
      case Operand::Kind::kSpecial:
        text_ += o.symbol;
        break;
      case Operand::Kind::kDiscard:
        text_ += "_";
        break;
      case Operand::Kind::kPair:
        operand(o.elements[0]);
        text_ += "|";
        operand(o.elements[1]);
        break;
    }
  }

  void number(const Operand& o) {
    char digits[24];
    const auto bits = static_cast<unsigned long long>(o.immediate);
    switch (o.immediate_kind) {
      case Operand::ImmediateKind::kInteger:
        std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(o.immediate));
        break;
      case Operand::ImmediateKind::kF32:
        std::snprintf(digits, sizeof digits, "0f%08llX", bits & 0xffffffff);
        break;
      case Operand::ImmediateKind::kF64:
        std::snprintf(digits, sizeof digits, "0d%016llX", bits);
        break;
    }
    text_ += digits;
  }

  void addend(int64_t value) {
    if (value >= 0) text_ += "+";
    text_ += std::to_string(value);
  }

  void address(const Operand& o) {
    text_ += "[";
    if (o.index >= 0) {
      text_ += name_of(o.index);
    } else {
      text_ += o.symbol;
    }
    const bool bare = o.index < 0 && o.symbol.empty();
    if (bare) {
      text_ += std::to_string(o.immediate);
    } else if (o.immediate) {
      addend(o.immediate);
    }
    list(o.elements, ", ");
    text_ += "]";
  }

  void label(int32_t index) {
    const auto& targets = function_.label_targets;
    const auto found = std::find(targets.begin(), targets.end(), uint32_t(index));
    if (found == targets.end()) {
      text_ += "instruction_" + std::to_string(index);
    } else {
      text_ += function_.label_names[size_t(found - targets.begin())];
    }
  }

  const Function& function_;
  std::string text_;
};

}  // namespace

std::string instruction_text(const Function& function, const Instruction& instruction) {
  return Printer(function).run(instruction);
}

}  // namespace kv::simt::ptx
