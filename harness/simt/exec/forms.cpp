#include "harness/simt/exec/forms.h"

#include <cstdlib>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace kv::simt {

FormRows directed64_forms();

namespace avx512 {
FormRows integer_forms(), logic_forms(), float_forms(), half_forms(), convert_forms(),
    memory_forms(), matrix_forms(), lane_forms(), async_copy_forms();
}
namespace avx2 {
FormRows integer_forms(), logic_forms(), float_forms(), half_forms(), convert_forms(),
    memory_forms(), matrix_forms(), lane_forms(), async_copy_forms();
}
namespace portable {
FormRows integer_forms(), logic_forms(), float_forms(), half_forms(), convert_forms(),
    memory_forms(), matrix_forms(), lane_forms(), async_copy_forms();
}

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

/// F16C, which clang 14 cannot ask for, came before AVX2 and is in every processor that has it.
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

}  // namespace

const FormSet& form_set() {
  static const FormSet set = [] {
    const char* const wanted = std::getenv("KVERIFY_CPU");
    const auto asked_for = [wanted](const char* name) {
      return wanted && std::strcmp(wanted, name) == 0;
    };
    if (!has_avx2() || asked_for("portable")) return KV_SET(portable);
    return !has_avx512() || asked_for("avx2") ? KV_SET(avx2) : KV_SET(avx512);
  }();
  return set;
}

const FormRow* find_form(std::string_view text) {
  static const auto index = index_forms();
  const auto found = index.find(std::string(text));
  return found == index.end() ? nullptr : found->second;
}

}  // namespace kv::simt
