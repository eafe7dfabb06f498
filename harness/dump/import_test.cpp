// Fails when a value of a dump reaches another place of the case than the dump's lists say, when a
// setting is lost, or when a dump that contradicts itself becomes a case.
#include "harness/dump/import.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "harness/case/data.h"
#include "harness/case/safetensors.h"
#include "harness/case/side_car.h"
#include "harness/case/text_file.h"
#include "harness/dump/testing.h"

namespace kv {
namespace {

using testing_dump::bytes;

/// A dump under construction: two requests of 5 and 3 slots, 2 heads of 2 dimensions; element
/// values say where they belong: 100 * request + 10 * slot + dimension, and 1000 more for the
/// second head.
struct Dump {
  TensorFile file;

  void add(const std::string& name, const std::string& type, std::vector<uint64_t> shape,
           const std::string& data) {
    drop(name);
    file.tensors.push_back({name, type, std::move(shape), file.data.size(), data.size()});
    file.data += data;
  }
  void drop(const std::string& name) {
    std::erase_if(file.tensors, [&](const StoredTensor& t) { return t.name == name; });
  }
  void lengths(const std::string& name, const std::vector<int32_t>& values) {
    add(name, "I32", {values.size()}, bytes(values));
  }
};

float mark(uint64_t request, uint64_t slot, uint64_t dim) {
  return static_cast<float>(100 * request + 10 * slot + dim);
}

constexpr uint64_t kHeads = 2, kDims = 2;

/// K, or with -1 V, of `pages` pages of `slots`; `place` says which slot lies where. What nobody
/// owns is NaN.
struct Grid {
  uint64_t pages, slots;
  bool heads_first = false;
};
template <class Place>
std::string cache(const Grid& grid, float sign, Place place) {
  std::vector<float> all(grid.pages * grid.slots * kHeads * kDims,
                         std::numeric_limits<float>::quiet_NaN());
  for (uint64_t r = 0; r < 2; ++r) {
    for (uint64_t slot = 0; slot < (r == 0 ? 5u : 3u); ++slot) {
      const auto [page, at] = place(r, slot);
      for (uint64_t i = 0; i < kHeads * kDims; ++i) {
        const uint64_t head = i / kDims, dim = i % kDims;
        const uint64_t row = grid.heads_first ? (page * kHeads + head) * grid.slots + at
                                              : (page * grid.slots + at) * kHeads + head;
        all[row * kDims + dim] = sign * (mark(r, slot, dim) + 1000.f * static_cast<float>(head));
      }
    }
  }
  return bytes(all);
}

/// Pages of 2 slots, scattered.
Dump paged(bool heads_first = false) {
  Dump d;
  const std::vector<std::vector<int32_t>> table = {{6, 1, 4, -1}, {0, 5, 99, 99}};
  const auto place = [&](uint64_t r, uint64_t slot) {
    return std::pair<uint64_t, uint64_t>(table[r][slot / 2], slot % 2);
  };
  const std::vector<uint64_t> shape = {7, 2, 2, 2};
  const Grid grid{7, 2, heads_first};
  d.add("key_cache", "F32", shape, cache(grid, 1, place));
  d.add("value_cache", "F32", shape, cache(grid, -1, place));
  d.add("block_tables", "I32", {2, 4}, bytes(table[0]) + bytes(table[1]));
  d.lengths("seq_lens", {5, 3});
  std::vector<float> q;  // the last 2 of the first, the last of the second
  for (const auto& [r, slot] : std::vector<std::pair<uint64_t, uint64_t>>{{0, 3}, {0, 4}, {1, 2}})
    for (uint64_t head = 0; head < 2; ++head)
      for (uint64_t dim = 0; dim < 2; ++dim)
        q.push_back(mark(r, slot, dim) + 1000 * (static_cast<float>(head) + 1));
  d.add("query", "F32", {3, 2, 2}, bytes(q));
  d.add("cu_seqlens_q", "I32", {3}, bytes<int32_t>({0, 2, 3}));
  d.file.metadata["scale"] = "0.25";
  return d;
}

/// The same, one row of 6 slots for each request.
Dump contiguous(bool heads_first = false) {
  Dump d = paged();
  for (const char* name : {"key_cache", "value_cache", "block_tables"}) d.drop(name);
  const auto place = [](uint64_t r, uint64_t slot) { return std::pair(r, slot); };
  const Grid grid{2, 6, heads_first};
  const std::vector<uint64_t> shape =
      heads_first ? std::vector<uint64_t>{2, 2, 6, 2} : std::vector<uint64_t>{2, 6, 2, 2};
  d.add("k", "F32", shape, cache(grid, 1, place));
  d.add("v", "F32", shape, cache(grid, -1, place));
  return d;
}

class ImportTest : public testing::Test {
 protected:
  ImportTest() : folder_(testing::TempDir() + "/import_test-" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~ImportTest() override { std::filesystem::remove_all(folder_); }

  /// The values of a row of the case, once its side-car is read.
  static float value(const Case& c, RowAddress where, uint32_t dim) {
    std::vector<std::byte> row(row_bytes(c.shape, where.role));
    fill_row(c, where, Slot{.history = 1}, row);
    return static_cast<float>(decode(DType::kF32, reinterpret_cast<uint32_t*>(row.data())[dim]));
  }
  void expect_marks(Imported made) const {
    static int count = 0;  // each name of a file is read once in a process
    const std::string path = folder_ + "/" + std::to_string(count++) + ".safetensors";
    ASSERT_TRUE(write_text_file(path, made.side_car).ok());
    made.c.data.tensors_file = path;
    const auto attached = attach_side_car(made.c, "");
    ASSERT_TRUE(attached.ok()) << attached.error().message;
    for (uint64_t r = 0; r < 2; ++r) {
      for (uint64_t slot = 0; slot < (r == 0 ? 5u : 3u); ++slot) {
        RowAddress where{.role = TensorRole::kKey, .request = RequestId(r), .slot = slot};
        EXPECT_EQ(value(made.c, where, 1), mark(r, slot, 1));
        where.head = 1;
        EXPECT_EQ(value(made.c, where, 0), mark(r, slot, 0) + 1000);
        where.role = TensorRole::kValue;
        EXPECT_EQ(value(made.c, where, 1), -mark(r, slot, 1) - 1000);
      }
      const auto last = static_cast<int64_t>(r == 0 ? 4 : 2);
      EXPECT_EQ(
          value(
              made.c,
              {.role = TensorRole::kQuery, .request = RequestId(r), .query_slot = last, .head = 1},
              1),
          mark(r, static_cast<uint64_t>(last), 1) + 2000);
    }
  }

  std::string folder_;
};

TEST_F(ImportTest, PagedRowsFindTheirPlace) {
  const auto made = import_dump(paged().file, {.name = "d"});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->c.pool.page_slots, 2u);
  EXPECT_EQ(made->c.pool.page_count, 5u);
  EXPECT_EQ(made->c.shape.scale, 0.25f);
  EXPECT_EQ(made->c.shape.query_heads, 2u);
  EXPECT_EQ(made->c.ops.size(), 3u);
  EXPECT_EQ(made->shared_pages, 0u);
  EXPECT_TRUE(made->not_used.empty());
  expect_marks(*made);
}

TEST_F(ImportTest, ContiguousRowsFindTheirPlace) {
  const auto made = import_dump(contiguous().file, {.name = "d"});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->c.pool.page_slots, 16u);
  expect_marks(*made);
}

TEST_F(ImportTest, HeadsMayComeBeforeSlots) {
  for (Dump d : {paged(true), contiguous(true)}) {
    d.file.metadata["layout"] = "head_slot";
    const auto made = import_dump(d.file, {.name = "d"});
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->c.pool.layout, CacheLayout::kHeadSlot);
    expect_marks(*made);
  }
}

TEST_F(ImportTest, SaysWhatItAssumesSharesAndLeaves) {
  Dump d = paged();
  d.file.metadata.clear();
  d.add("softcap", "F64", {}, bytes<double>({30}));
  d.add("output", "F32", {1}, bytes<float>({0}));
  d.add("block_tables", "I32", {2, 3}, bytes<int32_t>({6, 1, 4, 6, 1, 4}));
  const auto made = import_dump(d.file, {.name = "d", .settings = {.causal = Causal::kTopLeft}});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->not_used, std::vector<std::string>({"output"}));
  EXPECT_EQ(made->shared_pages, 2u);  // the second request holds two pages
  EXPECT_EQ(made->c.shape.softcap, 30);
  EXPECT_EQ(made->c.mask.causal, Causal::kTopLeft);
  EXPECT_EQ(made->assumed.size(), 4u);
}

TEST_F(ImportTest, APrefixChoosesALayer) {
  Dump d = contiguous();
  for (auto& tensor : d.file.tensors)
    if (tensor.name == "k" || tensor.name == "v") tensor.name = "layers.3." + tensor.name;
  EXPECT_FALSE(import_dump(d.file, {.name = "d"}).ok());
  const auto made = import_dump(d.file, {.name = "d", .prefix = "layers.3."});
  ASSERT_TRUE(made.ok()) << made.error().message;
  expect_marks(*made);
  // Even where the tensors without it would do: it is no other layer's.
  const auto slip = import_dump(contiguous().file, {.name = "d", .prefix = "layers.4."});
  ASSERT_FALSE(slip.ok());
  EXPECT_NE(slip.error().message.find("begins with \"layers.4.\", got none"), std::string::npos)
      << slip.error().message;
}

using Change = std::function<void(Dump&)>;

Change without(const char* name) {
  return [=](Dump& d) { d.drop(name); };
}
Change list(const char* name, std::vector<int32_t> values) {
  return [=](Dump& d) { d.lengths(name, values); };
}
Change tensor(const char* name, const char* type, std::vector<uint64_t> shape) {
  const uint64_t count = *element_count(shape);
  return [=](Dump& d) { d.add(name, type, shape, bytes(std::vector<float>(count, 1))); };
}
Change setting(const char* key, const char* text) {
  return [=](Dump& d) { d.file.metadata[key] = text; };
}

struct Lie {
  Change change;
  const char* part;  // of what is said
};
void expect_refused(const std::vector<Lie>& lies) {
  for (const auto& [change, part] : lies) {
    Dump d = paged();
    change(d);
    const auto made = import_dump(d.file, {.name = "d.safetensors"});
    ASSERT_FALSE(made.ok()) << part;
    const std::string& said = made.error().message;
    EXPECT_EQ(made.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
    EXPECT_NE(said.find("d.safetensors: "), std::string::npos) << said;
  }
}

TEST_F(ImportTest, RefusesListsThatContradictTheTensors) {
  expect_refused({
      {without("query"), "a tensor named q, query"},
      {without("seq_lens"), "a length for each request"},
      {list("context_lens", {5, 3}), "one name for it"},
      {list("seq_lens", {5}), "I32 or I64 [2]"},
      {list("seq_lens", {5, 0}), "kv_lengths[1]"},
      {list("seq_lens", {5, 9}), "1 to 8 slots, got 9"},
      {list("seq_lens", {7, 3}), "block_tables[0, 3]"},
      {list("seq_lens", {5, 5}), "a page below 7, got 99"},
      {list("cu_seqlens_q", {0, 2}), "I32 or I64 [3]"},
      {list("cu_seqlens_q", {1, 2, 3}), "cu_q[0]"},
      {list("cu_seqlens_q", {0, 3, 2}), "cu_q[2]"},
      {list("cu_seqlens_q", {0, 1, 2}), "the 3 tokens"},
      {list("cu_seqlens_q", {0, 2, 4}), "q_lengths[1]"},
      {list("q_lengths", {2, 1}), "lengths or their sums"},
      {without("cu_seqlens_q"), "how many of the 3 tokens"},
  });
}

TEST_F(ImportTest, RefusesTensorsAndSettingsThatContradictEachOther) {
  expect_refused({
      {tensor("key_cache", "I32", {1}), "F16, BF16 or F32"},
      {tensor("key_cache", "F32", {1, 1}), "4 dimensions"},
      {tensor("key_cache", "F32", {1, 1, 1, 2}), "but for the last dimension"},
      {tensor("query", "F32", {3, 2, 3}), "rows of 2 elements"},
      {tensor("query", "F32", {3, 1, 1, 2}), "[tokens, heads, dim]"},
      {tensor("query", "F32", {3, 3, 2}), "shape.query_heads"},
      {setting("scale", "nan"), "scale: expected a number"},
      {setting("scale", "1e99"), "shape.scale"},
      {setting("causal", "yes"), "causal: expected"},
      {setting("page_size", "3"), "pool.page_slots"},
      {setting("page_size", "4096"), "page_size: expected 1 to 256"},
      {setting("page_size", "4294967298"), "page_size: expected 1 to 256"},
      {setting("window_left", "-5"), "mask.window_left"},
      {tensor("scale", "F32", {2}), "it once"},
  });
}

}  // namespace
}  // namespace kv
