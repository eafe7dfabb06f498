// Dumps of several layers, and of caches of 8-bit codes.
#include <array>

#include "harness/case/kv_scales.h"
#include "harness/dump/import_testing.h"

namespace kv {
namespace {

/// Two layers, found under numbers that do not begin at 0: the second holds what the first does,
/// its sign turned.
Dump of_two_layers() {
  Dump d = paged();
  const TensorFile first = d.file;
  for (const char* name : {"key_cache", "value_cache", "query"}) {
    const StoredTensor tensor = *first.find(name);
    d.drop(name);
    std::string data = first.data.substr(tensor.first, tensor.bytes);
    d.add(std::string("model.9.") + name, "F32", tensor.shape, data);
    for (size_t at = 3; at < data.size(); at += 4) data[at] = static_cast<char>(data[at] ^ 0x80);
    d.add(std::string("model.10.") + name, "F32", tensor.shape, data);
  }
  return d;
}

// Fails when layers are taken in the order of their names as text, or a layer for another.
TEST_F(ImportTest, EveryLayerOfADumpIsTaken) {
  const auto made = import_dump(of_two_layers().file, {.name = "d", .prefix = "model.{}."});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->c.shape.layers, 2u);
  EXPECT_TRUE(made->not_used.empty());
  expect_marks(*made);
  Case c = made->c;
  c.data.tensors_file = folder_ + "/layers.safetensors";
  ASSERT_TRUE(write_text_file(c.data.tensors_file, made->side_car).ok());
  ASSERT_TRUE(attach_side_car(c, "").ok());
  const RowAddress key{
      .role = TensorRole::kKey, .request = RequestId(1), .slot = 2, .layer = 1, .head = 1};
  EXPECT_EQ(value(c, key, 1), -mark(1, 2, 1) - 1000);
}

TEST_F(ImportTest, RefusesLayersThatDiffer) {
  const auto refused = [](Dump d, const char* prefix, const char* part) {
    const auto made = import_dump(d.file, {.name = "d", .prefix = prefix});
    ASSERT_FALSE(made.ok()) << part;
    EXPECT_EQ(made.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(made.error().message.find(part), std::string::npos) << made.error().message;
  };
  refused(of_two_layers(), "layer{}.", "1 to 256 layers");
  Dump d = of_two_layers();
  d.lengths("model.10.seq_lens", {4, 3});
  refused(d, "model.{}.", "\"model.10.\": expected a q, k and v of its own");
  d = of_two_layers();
  d.drop("model.10.query");
  refused(d, "model.{}.", "a tensor named q, query");
  d.add("query", "F32", {3, 2, 2}, bytes(std::vector<float>(12, 1)));
  d.drop("model.9.query");
  refused(d, "model.{}.", "a q, k and v of its own");
  d = of_two_layers();
  d.add("model.007.key_cache", "F32", {1}, bytes<float>({1}));  // no number of ours
  EXPECT_TRUE(import_dump(d.file, {.name = "d", .prefix = "model.{}."}).ok());
}

/// K and V of codes: every slot's bytes are the same 4, head 0's first.
Dump of_codes(const char* type, const std::string& key) {
  Dump d = paged();
  std::string all;
  for (int i = 0; i < 7 * 2; ++i) all += key;
  d.add("key_cache", type, {7, 2, 2, 2}, all);
  d.add("value_cache", type, {7, 2, 2, 2}, all);
  std::string halves;
  for (int i = 0; i < 12; ++i) halves += std::string("\0\x3c", 2);
  d.add("query", "F16", {3, 2, 2}, halves);
  return d;
}

// Fails when a code is imported as another one, or its scale is another head's or lost.
TEST_F(ImportTest, CodesComeWithTheirScales) {
  Dump d = of_codes("F8_E4M3", "\x38\xb8\x7e\x01");  // 1, -1, 448, 2^-9
  d.add("k_scale", "F32", {2}, bytes<float>({0.5f, 0.3f}));
  d.add("v_scale", "F32", {}, bytes<float>({2}));
  const auto made = import_dump(d.file, {.name = "d"});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->c.shape.kv_dtype, DType::kE4m3);
  EXPECT_EQ(made->c.shape.kv_scale, KvScale::kHead);
  Case c = made->c;
  c.data.tensors_file = folder_ + "/codes.safetensors";
  ASSERT_TRUE(write_text_file(c.data.tensors_file, made->side_car).ok());
  ASSERT_TRUE(attach_side_car(c, "").ok());
  EXPECT_EQ(scale_of(c, 0, {.head = 1}), 0.3f);
  EXPECT_EQ(scale_of(c, 0, {.value = true, .head = 1}), 2.f);
  for (const bool is_value : {false, true}) {
    for (uint32_t head = 0; head < 2; ++head) {
      std::array<uint16_t, 2> row = {};
      fill_row(c,
               {.role = is_value ? TensorRole::kValue : TensorRole::kKey,
                .request = RequestId(0),
                .slot = 4,
                .head = head},
               Slot{.history = 1}, std::as_writable_bytes(std::span(row)));
      const double scale = scale_of(c, 0, {.value = is_value, .head = head});
      const uint32_t codes[2][2] = {{0x38, 0xb8}, {0x7e, 0x01}};
      for (uint32_t dim = 0; dim < 2; ++dim)
        EXPECT_EQ(encode_saturating(DType::kE4m3, decode(DType::kF16, row[dim]) / scale),
                  codes[head][dim]);
    }
  }
}

TEST_F(ImportTest, BytesWithoutATypeNeedOne) {
  const Dump d = of_codes("U8", "\x38\x3c\x40\x44");
  const auto untold = import_dump(d.file, {.name = "d"});
  ASSERT_FALSE(untold.ok());
  EXPECT_NE(untold.error().message.find("kv_dtype e4m3 or e5m2"), std::string::npos);
  const auto made = import_dump(d.file, {.name = "d", .settings = {.kv_dtype = DType::kE5m2}});
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->c.shape.kv_dtype, DType::kE5m2);
  EXPECT_EQ(made->c.shape.kv_scale, KvScale::kNone);
}

TEST_F(ImportTest, RefusesCodesThatNothingGives) {
  const auto refused = [](Dump d, const char* part, std::optional<DType> type = {}) {
    const auto made = import_dump(d.file, {.name = "d", .settings = {.kv_dtype = type}});
    ASSERT_FALSE(made.ok()) << part;
    EXPECT_EQ(made.error().kind, ErrorKind::kBadInput);
    EXPECT_NE(made.error().message.find(part), std::string::npos) << made.error().message;
  };
  refused(of_codes("F8_E4M3", "\x38\x7f\x38\x38"), "got 0x7f of head 0");  // a NaN
  refused(of_codes("F8_E5M2", "\x38\x38\x38\x7c"), "got 0x7c of head 1");  // an infinity
  refused(of_codes("I8", "\x01\x01\x80\x01"), "got 0x80 of head 1");       // -128
  refused(of_codes("F8_E4M3", "\x38\x38\x38\x38"), "kv_dtype e4m3", DType::kE5m2);
  Dump d = of_codes("F8_E4M3", "\x7e\x7e\x7e\x7e");
  d.add("k_scale", "F32", {}, bytes<float>({1000}));  // 448,000 is no F16
  refused(d, "scales of K and of V");
  d.add("v_scale", "F32", {}, bytes<float>({1}));
  refused(d, "got 0x7e of head 0");
  d.add("k_scale", "F32", {3}, bytes<float>({1, 1, 1}));
  refused(d, "one number, or [2] of them");
  d.add("k_scale", "F64", {}, bytes<double>({0}));
  refused(d, "finite scales other than 0");
  Dump floats = paged();
  floats.add("k_scale", "F32", {}, bytes<float>({1}));
  floats.add("v_scale", "F32", {}, bytes<float>({0.5f}));
  refused(floats, "1 beside K and V of F32");
  floats.add("v_scale", "F32", {}, bytes<float>({1}));
  EXPECT_TRUE(import_dump(floats.file, {.name = "d"}).ok());
}

}  // namespace
}  // namespace kv
