// Purpose: a dump under construction, and the values of the case that it becomes, for tests of
// import. Contract: nothing is checked, so that tests can write what lies; files are gone with the
// test. Example: Dump d = paged(); d.drop("seq_lens"); import_dump(d.file, {.name = "d"});
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "harness/case/data.h"
#include "harness/case/safetensors.h"
#include "harness/case/side_car.h"
#include "harness/case/text_file.h"
#include "harness/dump/import.h"
#include "harness/dump/testing.h"

namespace kv {

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

inline float mark(uint64_t request, uint64_t slot, uint64_t dim) {
  return static_cast<float>(100 * request + 10 * slot + dim);
}

inline constexpr uint64_t kHeads = 2, kDims = 2;

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
inline Dump paged(bool heads_first = false) {
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
inline Dump contiguous(bool heads_first = false) {
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

}  // namespace kv
