// Every form, run on the CPU device and compared with its definition.
#include <gtest/gtest.h>

#include "harness/simt/exec/semantics_test/form.h"

namespace kv::simt::semantics {
namespace {

struct Entry {
  const char* family;
  size_t index;
  Form form;
};

std::vector<Entry> entries() {
  std::vector<Entry> all;
  for (const Family& family : families()) {
    size_t index = 0;
    for (Form& form : family.forms()) all.push_back({family.name, index++, std::move(form)});
  }
  return all;
}

/// "Integer_012_add_sat_s32": letters, digits and underscores only.
std::string name_of(const testing::TestParamInfo<Entry>& info) {
  const Entry& entry = info.param;
  std::string name = std::string(entry.family) + "_" + std::to_string(entry.index) + "_";
  std::string_view text = entry.form.text;
  if (text[0] == '{') text = text.substr(text.size() > 60 ? text.size() - 60 : 0);
  for (char c : text.substr(0, 60)) {
    const bool kept = isalnum(static_cast<unsigned char>(c)) != 0;
    if (kept || name.back() != '_') name += kept ? c : '_';
  }
  return name;
}

class Forms : public testing::TestWithParam<Entry> {};

TEST_P(Forms, DoesWhatTheIsaSays) { check_form(GetParam().form); }

INSTANTIATE_TEST_SUITE_P(All, Forms, testing::ValuesIn(entries()), name_of);

void PrintTo(const Entry& entry, std::ostream* out) { *out << entry.form.text; }

}  // namespace
}  // namespace kv::simt::semantics
