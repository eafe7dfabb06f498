// From a form to a kernel that applies it to rows of operands.
#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/values.h"

namespace kv::simt::semantics {
namespace {

std::string reg(const char* stem, size_t index) { return stem + std::to_string(index); }

/// `$3` in the text becomes the third register: destinations first, then sources.
std::string substitute(const Form& form) {
  std::string text = form.text;
  const size_t count = form.to.size() + form.from.size();
  if (text.find('$') == text.npos) {
    for (size_t i = 0; i < count; ++i) text += (i ? ", $" : " $") + std::to_string(i);
    text += ";";
  }
  std::string result;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '$') {
      result += text[at];
      continue;
    }
    const char name = text[++at];
    const size_t index = size_t(name <= '9' ? name - '0' : name - 'a' + 10);
    result += index < form.to.size() ? reg("%d", index) : reg("%s", index - form.to.size());
  }
  return result;
}

std::string load(Operand type, size_t index) {
  const std::string s = reg("%s", index);
  const std::string word = "\tld.global.b64 %w, [%a+" + std::to_string(8 * index) + "];\n";
  switch (operand_bytes(type)) {
    case 0:
      return word + "\tsetp.ne.s64 " + s + ", %w, 0;\n";
    case 2:
      return word + "\tcvt.u16.u64 " + s + ", %w;\n";
    case 4:
      return word + "\tcvt.u32.u64 " + s + ", %w;\n";
    default:
      return word + "\tmov.b64 " + s + ", %w;\n";
  }
}

std::string store(Operand type, size_t index) {
  const std::string d = reg("%d", index);
  const std::string word = "\tst.global.b64 [%o+" + std::to_string(8 * index) + "], %w;\n";
  switch (operand_bytes(type)) {
    case 0:
      return "\tselp.b64 %w, 1, 0, " + d + ";\n" + word;
    case 2:
      return "\tcvt.u64.u16 %w, " + d + ";\n" + word;
    case 4:
      return "\tcvt.u64.u32 %w, " + d + ";\n" + word;
    default:
      return "\tst.global.b64 [%o+" + std::to_string(8 * index) + "], " + d + ";\n";
  }
}

std::string declare(Operand type, const std::string& name) {
  const uint32_t bytes = operand_bytes(type);
  const std::string kind = bytes == 0 ? ".pred" : ".b" + std::to_string(8 * bytes);
  return "\t.reg " + kind + " " + name + ";\n";
}

/// Thread i reads its sources from row i of `in` and writes row i of `out`, 64 bits each.
std::string kernel_text(const Form& form) {
  std::string text =
      ".visible .entry k#(.param .u64 in, .param .u64 out, .param .align 16 .b8 extra[16])\n{\n"
      "\t.reg .b64 %a, %o, %w, %i;\n\t.reg .b32 %t, %c, %n;\n";
  for (size_t i = 0; i < form.to.size(); ++i) text += declare(form.to[i], reg("%d", i));
  for (size_t i = 0; i < form.from.size(); ++i) text += declare(form.from[i], reg("%s", i));
  const std::string in_row = std::to_string(8 * row_words(form.from.size()));
  const std::string out_row = std::to_string(8 * row_words(form.to.size()));
  text +=
      "\tmov.u32 %t, %tid.x;\n\tmov.u32 %c, %ctaid.x;\n\tmov.u32 %n, %ntid.x;\n"
      "\tmad.lo.s32 %t, %c, %n, %t;\n\tld.param.u64 %a, [in];\n\tld.param.u64 %o, [out];\n"
      "\tmul.wide.u32 %i, %t, " +
      in_row +
      ";\n\tadd.s64 %a, %a, %i;\n"
      "\tmul.wide.u32 %i, %t, " +
      out_row + ";\n\tadd.s64 %o, %o, %i;\n";
  for (size_t i = 0; i < form.from.size(); ++i) text += load(form.from[i], i);
  text += "\t" + substitute(form) + "\n";
  for (size_t i = 0; i < form.to.size(); ++i) text += store(form.to[i], i);
  return text + "\tret;\n}\n";
}

}  // namespace

std::string vector_list(size_t first, size_t count) {
  std::string list;
  for (size_t i = first; i < first + count; ++i) {
    const char name = char(i < 10 ? '0' + i : 'a' + i - 10);
    list += (list.empty() ? std::string("$") : std::string(", $")) + name;
  }
  return "{" + list + "}";
}

std::string register_list(size_t first, size_t count) {
  const std::string list = vector_list(first, count);
  return count > 1 ? list : list.substr(1, list.size() - 2);
}

std::string module_text(const Form& form, const std::string& tag) {
  const std::string arch = std::to_string(form.sm) + (form.sm == 90 ? "a" : "");
  const std::string head = ".version 9.0\n.target sm_" + arch + "\n.address_size 64\n";
  std::string text;
  for (char c : form.declarations + "\n" + kernel_text(form))
    text += c == '#' ? tag : std::string(1, c);
  return head + text;
}

}  // namespace kv::simt::semantics
