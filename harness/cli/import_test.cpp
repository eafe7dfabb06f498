// A recorded call, imported and replayed against kvattn-like plugins: passes as it was recorded,
// fails on a wrong kernel, and is refused when a byte of it was changed. A value that lands in the
// wrong place, a damaged file that is replayed as another case, or a crash makes it fail.
#include <gtest/gtest.h>

#include <fstream>

#include "harness/case/data.h"
#include "harness/case/safetensors.h"
#include "harness/case/text_file.h"
#include "harness/case/timeline.h"
#include "harness/cli/testing/cli_fixture.h"

namespace kv::cli {
namespace {

/// The dump that an engine would write of the last step of a known case: its K, V and Q by the data
/// function, in pages at places of the dump's own.
TensorFile dump_of(const Case& c) {
  TensorFile file;
  const auto add = [&](const char* name, const char* type, std::vector<uint64_t> shape,
                       const std::string& data) {
    file.tensors.push_back({name, type, std::move(shape), file.data.size(), data.size()});
    file.data += data;
  };
  Timeline timeline = Timeline::create(c).value();
  PlannedStep step;
  for (uint32_t i = 0; i < c.ops.size(); ++i) step = timeline.apply(i);
  const PlannedRow& row = step.rows.at(0);
  const Sequence& sequence = timeline.sequence(row.request);
  const uint64_t page = c.pool.page_slots, pages = (row.kv_length + page - 1) / page;
  const auto rows = [&](TensorRole role, int64_t first, uint32_t heads) {
    std::string data;
    for (int64_t slot = first; slot < int64_t{row.kv_length}; ++slot) {
      for (uint32_t head = 0; head < heads; ++head) {
        std::vector<std::byte> bytes(row_bytes(c.shape, role));
        fill_row(c,
                 {.role = role,
                  .request = row.request,
                  .slot = static_cast<uint64_t>(slot),
                  .query_slot = slot,
                  .head = head,
                  .kv_length = row.kv_length},
                 slot_or_tokenless(c, sequence, slot), bytes);
        data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      }
    }
    return data;
  };
  // Page p of the request is page pages - p of the dump; page 0 is nobody's.
  const auto scattered = [&](const std::string& data) {
    const uint64_t bytes = page * c.shape.kv_heads * row_bytes(c.shape, TensorRole::kKey);
    std::string out((pages + 1) * bytes, '\xff');
    for (uint64_t p = 0; p < pages; ++p) {
      const std::string one = data.substr(p * bytes, bytes);
      out.replace((pages - p) * bytes, one.size(), one);
    }
    return out;
  };
  const std::vector<uint64_t> shape = {pages + 1, page, c.shape.kv_heads, c.shape.head_dim_k};
  add("key_cache", "F16", shape, scattered(rows(TensorRole::kKey, 0, c.shape.kv_heads)));
  add("value_cache", "F16", shape, scattered(rows(TensorRole::kValue, 0, c.shape.kv_heads)));
  add("query", "F16", {row.queries, c.shape.query_heads, c.shape.head_dim_k},
      rows(TensorRole::kQuery, query_slot(row, 0), c.shape.query_heads));
  std::string table;
  for (uint64_t p = 0; p < pages; ++p) {
    const int64_t at = static_cast<int64_t>(pages - p);
    table.append(reinterpret_cast<const char*>(&at), sizeof at);
  }
  add("block_table", "I64", {1, pages}, table);
  const int64_t length = row.kv_length;
  add("seq_lens", "I64", {1}, {reinterpret_cast<const char*>(&length), sizeof length});
  file.metadata["scale"] = "0.125";
  return file;
}

class ImportCliTest : public CliTest {
 protected:
  std::string dump(const std::string& text) const {
    const std::string path = folder_ + "/dump.safetensors";
    EXPECT_TRUE(write_text_file(path, text).ok());
    return path;
  }
  std::string out() const { return folder_ + "/imported.json"; }
};

TEST_F(ImportCliTest, ARecordedCallIsReplayed) {
  const std::string text = safetensors_text(dump_of(small_case()));
  const Ran made = run_kverify({"import", dump(text), "--out", out()});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_SAYS(made.out, "1 requests, 10 slots in 3 pages, 1 query rows, 1 layers");
  EXPECT_SAYS(made.out, "not said, so assumed: causal bottom_right");
  const Ran right = run_kverify({"replay", out(), "--plugin", kHost});
  EXPECT_EQ(right.status, 0) << right.out << right.err;
  EXPECT_SAYS(right.out, "1 pass");
  const Ran wrong = run_kverify({"replay", out(), "--plugin", kMisbehaving},
                                {.environment = {{"KVERIFY_TEST_FAULT", "wrong_value"}}});
  EXPECT_EQ(wrong.status, 1) << wrong.out << wrong.err;
}

// Fails when codes and scales of a recorded cache do not reach append and attend as they were, or
// when what the judge expects is not made of them.
TEST_F(ImportCliTest, ARecordedCacheOfCodesIsReplayed) {
  TensorFile file = dump_of(small_case());
  const auto replace = [&](const char* name, std::vector<uint64_t> shape, const std::string& data,
                           const char* type) {
    std::erase_if(file.tensors, [&](const StoredTensor& t) { return t.name == name; });
    file.tensors.push_back({name, type, std::move(shape), file.data.size(), data.size()});
    file.data += data;
  };
  const std::vector<uint64_t> shape = file.find("key_cache")->shape;
  for (const char* name : {"key_cache", "value_cache"}) {
    std::string codes(*element_count(shape), '\0');
    for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<char>(i * 37 % 251 % 120);
    replace(name, shape, codes, "F8_E4M3");
  }
  const std::vector<float> scales = {0.07f, 0.25f};
  const std::string_view bytes(reinterpret_cast<const char*>(scales.data()), 8);
  replace("k_scale", {2}, std::string(bytes), "F32");
  replace("v_scale", {}, std::string(bytes.substr(0, 4)), "F32");
  ASSERT_EQ(run_kverify({"import", dump(safetensors_text(file)), "--out", out()}).status, 0);
  const auto made = load_case(out());
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->shape.kv_dtype, DType::kE4m3);
  const std::string kvattn = KV_BUILD_DIR "/lib/libkvattn_plugin.so";
  if (!fs::exists(kvattn)) GTEST_SKIP() << "kvattn is not built";
  const Ran ran = run_kverify({"replay", out()});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_SAYS(ran.out, "1 pass");
}

TEST_F(ImportCliTest, AnotherFileBesideTheCaseIsRefused) {
  TensorFile file = dump_of(small_case());
  ASSERT_EQ(run_kverify({"import", dump(safetensors_text(file)), "--out", out()}).status, 0);
  const std::string beside = folder_ + "/imported.safetensors";
  auto text = read_text_file(beside, 1 << 20);
  ASSERT_TRUE(text.ok());
  text->back() = static_cast<char>(text->back() ^ 1);
  ASSERT_TRUE(write_text_file(beside, *text).ok());
  const Ran changed = run_kverify({"replay", out(), "--plugin", kHost});
  EXPECT_EQ(changed.status, 2) << changed.out;
  EXPECT_SAYS(changed.err, "data.digest");
  ASSERT_TRUE(write_text_file(beside, text->substr(0, text->size() / 2)).ok());
  EXPECT_EQ(run_kverify({"replay", out(), "--plugin", kHost}).status, 2);
  fs::remove(beside);
  const Ran gone = run_kverify({"replay", out(), "--plugin", kHost});
  EXPECT_EQ(gone.status, 2);
  EXPECT_SAYS(gone.err, "no such file");
}

TEST_F(ImportCliTest, ADamagedDumpIsRefusedAndLeavesNothing) {
  const TensorFile file = dump_of(small_case());  // nobody's page holds NaN
  const std::string text = safetensors_text(file);
  const size_t last = file.find("query")->first + 1;
  TensorFile infinite = file;
  infinite.data[last] = '\x7c';
  infinite.data[last - 1] = 0;
  for (const std::string& damaged :
       {text.substr(0, text.size() - 1), text.substr(0, 40), std::string(),
        std::string("PK\x03\x04"), safetensors_text(infinite)}) {
    const Ran ran = run_kverify({"import", dump(damaged), "--out", out()});
    EXPECT_EQ(ran.status, 2) << ran.out;
    EXPECT_SAYS(ran.err, "dump.safetensors");
    EXPECT_FALSE(fs::exists(out()));
    EXPECT_FALSE(fs::exists(folder_ + "/imported.safetensors"));
  }
  EXPECT_EQ(run_kverify({"import", dump(safetensors_text(file)), "--out", out()}).status, 0);
}

TEST_F(ImportCliTest, LeavesWhatIsThereAsItIs) {
  TensorFile file = dump_of(small_case());
  const std::string beside = folder_ + "/imported.safetensors";
  ASSERT_TRUE(write_text_file(beside, "weights").ok());
  const Ran foreign = run_kverify({"import", dump(safetensors_text(file)), "--out", out()});
  EXPECT_EQ(foreign.status, 2) << foreign.out;
  EXPECT_EQ(*read_text_file(beside, 100), "weights");
  fs::remove(beside);
  ASSERT_EQ(run_kverify({"import", dump(safetensors_text(file)), "--out", out()}).status, 0);
  const size_t last = file.find("query")->first + 1;
  file.data[last] = '\x7c';  // an infinity
  file.data[last - 1] = 0;
  EXPECT_EQ(run_kverify({"import", dump(safetensors_text(file)), "--out", out()}).status, 2);
  EXPECT_EQ(run_kverify({"replay", out(), "--plugin", kHost}).status, 0);
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_NE(entry.path().extension(), ".new") << entry.path();
}

TEST_F(ImportCliTest, RefusesToWriteOverTheDump) {
  const std::string path = dump(safetensors_text(dump_of(small_case())));
  EXPECT_EQ(run_kverify({"import", path, "--out", path}).status, 2);
  EXPECT_EQ(run_kverify({"import", path, "--out", folder_ + "/dump.json"}).status, 2);
  EXPECT_EQ(run_kverify({"import", path, "--out", out(), "--scale", "much"}).status, 2);
  EXPECT_EQ(run_kverify({"import", path, "--out", out(), "--causal", "yes"}).status, 2);
  EXPECT_EQ(run_kverify({"import", path, "--out", folder_ + "/no/folder.json"}).status, 3);
}

}  // namespace
}  // namespace kv::cli
