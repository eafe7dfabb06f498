// Fails when a case with tensors beside it takes other values than the file's at any place, takes
// them where it should not, or reads a file that lies.
#include "harness/case/side_car.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "harness/case/json.h"
#include "harness/case/safetensors.h"
#include "harness/case/text_file.h"

namespace kv {
namespace {

namespace fs = std::filesystem;

struct Part {
  std::string name, type;
  std::vector<uint64_t> shape;
  std::string data;
};
std::string text_of(const std::vector<Part>& parts) {
  TensorFile file;
  for (const Part& p : parts) {
    file.tensors.push_back({p.name, p.type, p.shape, file.data.size(), p.data.size()});
    file.data += p.data;
  }
  return safetensors_text(file);
}
template <class T>
std::string bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
std::string halves(const std::vector<double>& values) {
  std::vector<uint16_t> bits;
  for (const double v : values) bits.push_back(static_cast<uint16_t>(encode(DType::kF16, v)));
  return bytes(bits);
}

// Requests 2 and 5 of 3 and 1 slots, the last of them queried; one head of 2 dimensions.
std::vector<Part> parts() {
  return {{"request", "I64", {2}, bytes<int64_t>({2, 5})},
          {"kv_begin", "I64", {3}, bytes<int64_t>({0, 3, 4})},
          {"query_begin", "I64", {3}, bytes<int64_t>({0, 1, 2})},
          {"layer0.key", "F16", {4, 1, 2}, halves({1, 2, 3, 4, 5, 6, 7, 8})},
          {"layer0.value", "F16", {4, 1, 2}, halves({11, 12, 13, 14, 15, 16, 17, 18})},
          {"layer0.query", "F16", {2, 1, 2}, halves({21, 22, 23, 24})}};
}

class SideCarTest : public testing::Test {
 protected:
  SideCarTest() : folder_(testing::TempDir() + "/side_car_test-" + std::to_string(getpid())) {
    fs::create_directories(folder_ + "/cases");
    case_.shape.head_dim_k = case_.shape.head_dim_v = 2;
    case_.pool.page_slots = 4;
    case_.pool.page_count = 4;
    case_.ops = {op::Admit{.request = RequestId(2), .prompt_tokens = 3},
                 op::Step{.rows = {{.request = RequestId(2), .append = 3, .queries = 3}}}};
  }
  ~SideCarTest() override { fs::remove_all(folder_); }

  /// Each name of a file is read once in a process.
  Case loaded(const std::string& text) {
    const std::string name = std::to_string(count_++) + "-" + std::to_string(getpid()) + "-" +
                             testing::UnitTest::GetInstance()->current_test_info()->name();
    EXPECT_TRUE(write_text_file(folder_ + "/" + name, text).ok());
    Case c = case_;
    c.data.tensors_file = fs::path(folder_) / name;
    EXPECT_TRUE(save_case(folder_ + "/cases/c.json", c).ok());
    const auto back = load_case(folder_ + "/cases/c.json");
    error_ = back.ok() ? "" : back.error().message;
    return back.ok() ? *back : c;
  }
  static std::vector<double> row(const Case& c, RowAddress where) {
    const Slot slot{.history = 77};
    std::vector<std::byte> out(row_bytes(c.shape, where.role));
    fill_row(c, where, slot, out);
    std::vector<double> values(row_elements(c.shape, where.role));
    decode_row(tensor_dtype(c.shape, where.role), out.data(), values.size(), values.data());
    return values;
  }

  std::string folder_, error_;
  Case case_;
  int count_ = 0;
};

using Values = std::vector<double>;

TEST_F(SideCarTest, ReplacesTheDesignWhereItHoldsSomething) {
  const Case c = loaded(text_of(parts()));
  ASSERT_EQ(error_, "");
  ASSERT_TRUE(Timeline::create(c).ok());
  const RequestId two(2), five(5), other(3);
  EXPECT_EQ(row(c, {.role = TensorRole::kKey, .request = two, .slot = 1}), Values({3, 4}));
  EXPECT_EQ(row(c, {.role = TensorRole::kValue, .request = five, .slot = 0}), Values({17, 18}));
  EXPECT_EQ(row(c, {.role = TensorRole::kQuery, .request = two, .query_slot = 2}),
            Values({21, 22}));
  Case design = c;
  design.data.tensors_file = "";
  for (const RowAddress& where :
       std::vector<RowAddress>{{.role = TensorRole::kKey, .request = two, .slot = 3},
                               {.role = TensorRole::kKey, .request = other, .slot = 0},
                               {.role = TensorRole::kValue, .request = two, .slot = 1, .layer = 1},
                               {.role = TensorRole::kValue, .request = two, .slot = 1, .head = 1},
                               {.role = TensorRole::kQuery, .request = two, .query_slot = 1},
                               {.role = TensorRole::kQuery, .request = two, .query_slot = -1}}) {
    EXPECT_EQ(row(c, where), row(design, where));
  }
}

TEST_F(SideCarTest, ASmallerShapeReadsTheBeginningAndAnotherTypeRounds) {
  Case c = loaded(text_of(parts()));
  c.shape.head_dim_k = 1;
  c.shape.kv_dtype = DType::kBf16;
  EXPECT_EQ(row(c, {.role = TensorRole::kKey, .request = RequestId(2), .slot = 2}), Values({5}));
}

TEST_F(SideCarTest, TheCaseNamesItRelativeToItself) {
  const Case c = loaded(text_of(parts()));
  const auto text = read_text_file(folder_ + "/cases/c.json", 1 << 20);
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("\"tensors_file\": \"../0-"), std::string::npos) << *text;
  EXPECT_TRUE(fs::path(c.data.tensors_file).is_absolute());
}

TEST_F(SideCarTest, ACaseThatWasNotReadFromItsFileIsRefused) {
  Case c = case_;
  c.data.tensors_file = "nowhere.safetensors";
  const auto timeline = Timeline::create(c);
  ASSERT_FALSE(timeline.ok());
  EXPECT_EQ(timeline.error().kind, ErrorKind::kBadInput);
}

TEST_F(SideCarTest, TheDigestCoversItsValues) {
  const uint64_t digest = input_digest(loaded(text_of(parts())));
  auto changed = parts();
  changed[4].data[2] ^= 1;  // of a value
  EXPECT_NE(input_digest(loaded(text_of(changed))), digest);
}

TEST_F(SideCarTest, RefusesFilesThatLie) {
  const auto with = [](size_t index, const auto& change) {
    auto all = parts();
    change(all[index]);
    return text_of(all);
  };
  const std::vector<std::pair<std::string, std::string>> lies = {
      {with(0, [](Part& p) { p.name = "requests"; }), "request: expected a tensor"},
      {with(0,
            [](Part& p) {
              p.data = bytes<int64_t>({5, 2});
            }),
       "request[1]: expected ascending"},
      {with(0,
            [](Part& p) {
              p.data = bytes<int64_t>({5, 5});
            }),
       "each id once"},
      {with(0,
            [](Part& p) {
              p.data = bytes<int64_t>({-1, 5});
            }),
       "numbers from 0, got -1"},
      {with(1,
            [](Part& p) {
              p.data = bytes<int64_t>({1, 3, 4});
            }),
       "kv_begin: expected 3 numbers"},
      {with(2,
            [](Part& p) {
              p.data = bytes<int64_t>({0, 0, 2});
            }),
       "at most 1 query rows"},
      {with(3, [](Part& p) { p.name = "layer0.keys"; }), "another name"},
      {with(3, [](Part& p) { p.name = "layer999999999999.key"; }), "another name"},
      {with(3, [](Part& p) { p.type = "I16"; }), "F16, BF16 or F32"},
      {with(3,
            [](Part& p) {
              p.shape = {2, 2, 2};
            }),
       "[4, heads, dimensions]"},
      {with(3,
            [](Part& p) {
              p.data = halves({1, 2, 3, 4, 5, 6, 7, 1e9});
            }),
       "[7]: expected finite"},
      {"", "a length of 8 bytes"},
  };
  for (const auto& [text, part] : lies) {
    loaded(text);
    EXPECT_NE(error_.find(part), std::string::npos) << part << "\n" << error_;
    EXPECT_NE(error_.find("data.tensors_file"), std::string::npos) << error_;
  }
}

}  // namespace
}  // namespace kv
