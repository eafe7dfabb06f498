#include "harness/simt/exec/forms.h"

#include <unordered_map>
#include <vector>

#include "harness/core/cpu.h"

namespace kv::simt {

FormRows directed64_forms();

#define KV_TABLES(isa)                                                                   \
  namespace isa {                                                                        \
  FormRows integer_forms(), logic_forms(), float_forms(), half_forms(), convert_forms(), \
      memory_forms(), matrix_forms(), lane_forms(), async_copy_forms();                  \
  }
KV_TABLES(avx512)
KV_TABLES(avx2)
KV_TABLES(portable)

namespace {

#define KV_SET(isa)                                                                          \
  FormSet {                                                                                  \
#isa, {                                                                                  \
      isa::integer_forms(), isa::logic_forms(), isa::float_forms(), isa::half_forms(),       \
          isa::convert_forms(), isa::memory_forms(), isa::matrix_forms(), isa::lane_forms(), \
          isa::async_copy_forms(), directed64_forms()                                        \
    }                                                                                        \
  }

/// Alternatives in braces, the first ones first: "a{b,c}d" is "abd" and "acd".
void expand(const std::string& pattern, std::vector<std::string>* out) {
  const size_t open = pattern.find('{');
  if (open == pattern.npos) {
    out->push_back(pattern);
    return;
  }
  const size_t close = pattern.find('}', open);
  const std::string head = pattern.substr(0, open), tail = pattern.substr(close + 1);
  std::string choices = pattern.substr(open + 1, close - open - 1) + ",";
  for (size_t comma; (comma = choices.find(',')) != choices.npos; choices.erase(0, comma + 1)) {
    expand(head + choices.substr(0, comma) + tail, out);
  }
}

std::unordered_map<std::string, const FormRow*> index_forms() {
  std::unordered_map<std::string, const FormRow*> index;  // looked up, never iterated
  std::vector<std::string> names;
  for (const FormRows& table : form_set().tables) {
    for (size_t k = 0; k < table.count; ++k) {
      names.clear();
      expand(table.rows[k].pattern, &names);
      for (std::string& name : names) index.emplace(std::move(name), &table.rows[k]);
    }
  }
  return index;
}

FormSet set_of(Cpu cpu) {
  switch (cpu) {
    case Cpu::kAvx512:
      return KV_SET(avx512);
    case Cpu::kAvx2:
      return KV_SET(avx2);
    case Cpu::kPortable:
      break;
  }
  return KV_SET(portable);
}

}  // namespace

const FormSet& form_set() {
  static const FormSet set = set_of(chosen_cpu());
  return set;
}

const FormRow* find_form(std::string_view text) {
  static const auto index = index_forms();
  const auto found = index.find(std::string(text));
  return found == index.end() ? nullptr : found->second;
}

}  // namespace kv::simt
