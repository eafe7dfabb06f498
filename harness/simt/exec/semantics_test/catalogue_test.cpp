// The list of forms itself: real PTX, and complete. Needs no executor.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/ptx/parse.h"

namespace kv::simt::semantics {
namespace {

std::vector<Form> all_forms() {
  std::vector<Form> all;
  for (const Family& family : families()) {
    for (Form& form : family.forms()) all.push_back(std::move(form));
  }
  return all;
}

TEST(Catalogue, OurParserReadsEveryForm) {
  for (const Form& form : all_forms()) {
    const auto module = ptx::parse_module(module_text(form));
    EXPECT_TRUE(module.ok()) << form.text << "\n" << (module.ok() ? "" : module.error().message);
    EXPECT_TRUE(bool(form.define) != bool(form.define_warp)) << form.text;
    EXPECT_FALSE(form.section.empty()) << form.text;
  }
}

/// The toolkit's assembler knows nothing of this project: what it takes is PTX for that target.
TEST(Catalogue, PtxasAcceptsEveryForm) {
  const std::string folder = std::string(KV_TEST_FOLDER) + "/ptxas_input";
  ASSERT_EQ(std::system(("mkdir -p '" + folder + "'").c_str()), 0);
  std::map<uint32_t, std::ofstream> files;
  std::map<uint32_t, size_t> counts;
  for (const Form& form : all_forms()) {
    std::ofstream& file = files[form.sm];
    const std::string text = module_text(form, "_" + std::to_string(counts[form.sm]++));
    const size_t head = text.find(".address_size 64") + 16;
    if (!file.is_open()) {
      file.open(folder + "/" + std::to_string(form.sm) + ".ptx");
      file << text.substr(0, head) << "\n";
    }
    file << "// " << form.text << text.substr(head) << "\n";
  }
  files.clear();
  for (const auto& [sm, count] : counts) {
    const std::string arch = "sm_" + std::to_string(sm) + (sm == 90 ? "a" : "");
    const std::string command = std::string("'") + KV_PTXAS + "' -O0 -arch=" + arch +
                                " -o /dev/null '" + folder + "/" + std::to_string(sm) +
                                ".ptx' 2>'" + folder + "/errors'";
    const int status = std::system(command.c_str());
    std::ifstream errors(folder + "/errors");
    std::string line, shown;
    for (int i = 0; i < 30 && std::getline(errors, line); ++i) shown += line + "\n";
    EXPECT_EQ(status, 0) << arch << ", " << count << " kernels:\n" << shown;
  }
}

TEST(Catalogue, ListsAsUnsupportedOnlyFormsThatExist) {
  std::set<std::string> texts;
  for (const Form& form : all_forms()) texts.insert(form.text);
  for (const std::string& text : unsupported()) EXPECT_TRUE(texts.contains(text)) << text;
}

/// Opcodes met in public attention kernels, all but those that only FlashAttention-3 uses.
TEST(Catalogue, CoversTheOpcodesOfPublicKernels) {
  std::ifstream table(std::string(KV_SOURCE_DIR) + "/../shared/opcodes.tsv");
  if (!table.is_open()) GTEST_SKIP() << "../shared/opcodes.tsv is absent";
  std::set<std::string> known;
  for (const Form& form : all_forms()) {
    const auto module = ptx::parse_module(module_text(form));
    if (!module.ok() || unsupported().contains(form.text)) continue;
    for (const ptx::Function& function : (*module)->functions) {
      for (const ptx::Instruction& instruction : function.code) known.emplace(instruction.text);
    }
  }
  std::string line;
  std::getline(table, line);
  size_t rows = 0;
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string opcode;
    uint64_t total = 0, fa2 = 0, fa3 = 0;
    fields >> opcode >> total >> fa2 >> fa3;
    if (total == fa3 || opcode == "trap") continue;  // trap: ending_test.cpp
    ++rows;
    EXPECT_TRUE(known.contains(opcode)) << opcode << " has no supported form";
  }
  EXPECT_GT(rows, 200u);
}

}  // namespace
}  // namespace kv::simt::semantics
