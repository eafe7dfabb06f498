// Every argument that can be wrong is refused with a sentence that names it, before any launch.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <functional>

#include "impl/serving_test.h"

namespace {
int allocations = 0;
}

/// Every allocation of this program: it is found before the runtime's.
extern "C" cudaError_t cudaMalloc(void** memory, size_t bytes) {
  using Malloc = cudaError_t (*)(void**, size_t);
  static const auto runtime = reinterpret_cast<Malloc>(dlsym(RTLD_NEXT, "cudaMalloc"));
  ++allocations;
  return runtime(memory, bytes);
}

namespace kvattn {
namespace {

using namespace kvattn::testing;

constexpr AttentionShape kShape = {.query_heads = 4,
                                   .kv_heads = 2,
                                   .head_dim = 64,
                                   .page_slots = 16,
                                   .dtype = DType::kF16,
                                   .scale = 0.125f};
constexpr uint8_t kCanary = 0x5a;

/// A lawful append and a lawful attend over memory that is filled with canaries.
class Refusals : public ::testing::Test {
 protected:
  Refusals()
      : table_(take(BlockTable::create({.requests = 2, .pages_max = 3}))),
        pool_(take(KvPool::create(kShape, {.layers = 1, .pages = 8}))) {
    const std::vector<Page> pages = take(pool_.acquire(2));
    check(table_.upload({{&pages[0], 1}, {&pages[1], 1}}, nullptr));
    const CacheView cache = take(pool_.layer(0, table_));
    check(cudaMemset(cache.key.data, kCanary, kPoolBytes));
    check(cudaMemset(output_.get(), kCanary, kOutputBytes));
    append_ = {.cache = cache,
               .key = dense_view(key_.get(), DType::kF16, {5, 2, 64}, 3),
               .value = dense_view(value_.get(), DType::kF16, {5, 2, 64}, 3),
               .token_offsets = dense_view(offsets_.get(), DType::kI32, {3}, 1),
               .first_slots = dense_view(zeros_.get(), DType::kI32, {2}, 1)};
    attend_ = {.cache = cache,
               .query = dense_view(query_.get(), DType::kF16, {5, 4, 64}, 3),
               .query_offsets = dense_view(offsets_.get(), DType::kI32, {3}, 1),
               .kv_lengths = dense_view(lengths_.get(), DType::kI32, {2}, 1),
               .key_begin = dense_view(zeros_.get(), DType::kI32, {2}, 1),
               .key_end = dense_view(lengths_.get(), DType::kI32, {2}, 1),
               .output = dense_view(output_.get(), DType::kF16, {5, 4, 64}, 3),
               .lse = dense_view(lse_.get(), DType::kF32, {5, 4}, 2)};
    plan_ = take(make_plan(kShape, {.query_lengths = kLengths, .kv_lengths = kLengths}));
  }

  void expect_untouched() {
    check(cudaDeviceSynchronize());
    const std::vector<uint8_t> canary(kOutputBytes, kCanary);
    EXPECT_EQ(download<uint8_t>(output_, kOutputBytes), canary);
    std::vector<uint8_t> pool(kPoolBytes);
    check(cudaMemcpy(pool.data(), append_.cache.key.data, kPoolBytes, cudaMemcpyDeviceToHost));
    EXPECT_EQ(pool, std::vector<uint8_t>(kPoolBytes, kCanary));
  }

  static void expect_says(const Status& status, StatusCode code, const std::string& what) {
    EXPECT_EQ(status.code(), code) << status.text();
    EXPECT_NE(status.text().find(what), std::string::npos)
        << "\"" << status.text() << "\" does not name \"" << what << "\"";
  }

  static constexpr int64_t kPoolBytes = 2 * 8 * 16 * 2 * 64 * 2, kOutputBytes = 5 * 4 * 64 * 2;
  inline static const std::vector<int32_t> kLengths = {2, 3};
  BlockTable table_;
  KvPool pool_;
  DeviceMemory key_ = upload(std::vector<uint16_t>(5 * 2 * 64)),
               value_ = upload(std::vector<uint16_t>(5 * 2 * 64)),
               query_ = upload(std::vector<uint16_t>(5 * 4 * 64)),
               offsets_ = upload(std::vector<int32_t>{0, 2, 5}), lengths_ = upload(kLengths),
               zeros_ = upload(std::vector<int32_t>(2)),
               positions_ = upload(std::vector<int64_t>(5)),
               output_ = take(allocate_device(kOutputBytes)),
               lse_ = take(allocate_device(5 * 4 * 4));
  AppendCall append_;
  AttendCall attend_;
  Plan plan_;
};

// Fails when a call takes memory of the device: its workspace is the caller's.
TEST_F(Refusals, LawfulCallsAllocateNothing) {
  const int before = allocations;
  const DeviceMemory seen = take(allocate_device(16));
  EXPECT_EQ(allocations, before + 1);
  check(append(append_, kShape));
  check(attend(attend_, plan_, kShape));
  check(cudaDeviceSynchronize());
  EXPECT_EQ(allocations, before + 1);
}

TEST_F(Refusals, LawfulCallsRun) {
  check(append(append_, kShape));
  check(attend(attend_, plan_, kShape));
  check(cudaDeviceSynchronize());
  EXPECT_NE(download<uint8_t>(output_, kOutputBytes), std::vector<uint8_t>(kOutputBytes, kCanary));
}

struct BadTensor {
  std::string what;
  StatusCode code;
  std::function<void(TensorView&)> spoil;
};

std::vector<BadTensor> bad_tensors() {
  using enum StatusCode;
  return {
      {"dtype", kRefused,
       [](TensorView& t) { t.dtype = t.dtype == DType::kF16 ? DType::kF32 : DType::kF16; }},
      {"shape", kRefused, [](TensorView& t) { t.rank -= 1; }},
      {"shape", kRefused, [](TensorView& t) { t.shape[t.rank - 1] += 1; }},
      {"shape", kRefused, [](TensorView& t) { t.shape[0] = -1; }},
      {"null", kRefused, [](TensorView& t) { t.data = nullptr; }},
      {"aligned", kRefused, [](TensorView& t) { t.data = static_cast<char*>(t.data) + 1; }},
      {"innermost stride", kRefused, [](TensorView& t) { t.strides[t.rank - 1] = 2; }},
  };
}

std::vector<BadTensor> bad_strides() {
  using enum StatusCode;
  return {{"stride", kRefused, [](TensorView& t) { t.strides[0] = -64; }},
          {"2^59", kRefused, [](TensorView& t) { t.strides[0] = INT64_MAX; }},
          {"2^59", kRefused, [](TensorView& t) { t.strides[0] = int64_t{1} << 61; }}};
}

TEST_F(Refusals, NamesEveryBadTensorOfAppend) {
  struct Member {
    std::string name;
    TensorView AppendCall::*tensor;
    bool strided;
  };
  for (const auto& [name, tensor, strided] : {Member{"key", &AppendCall::key, true},
                                              {"value", &AppendCall::value, true},
                                              {"token_offsets", &AppendCall::token_offsets, false},
                                              {"first_slots", &AppendCall::first_slots, false}}) {
    std::vector<BadTensor> all = bad_tensors(), strides = bad_strides();
    if (strided) all.insert(all.end(), strides.begin(), strides.end());
    for (const BadTensor& bad : all) {
      AppendCall call = append_;
      bad.spoil(call.*tensor);
      SCOPED_TRACE(sentence(name, " ", bad.what));
      // Another number of offsets contradicts the block table first.
      const bool table_first = name == "token_offsets" && bad.what == "shape";
      expect_says(append(call, kShape), bad.code, table_first ? "" : name);
    }
  }
  expect_untouched();
}

TEST_F(Refusals, NamesEveryBadTensorOfAttend) {
  struct Member {
    std::string name;
    TensorView AttendCall::*tensor;
    bool strided;
  };
  for (const auto& [name, tensor, strided] : {Member{"query", &AttendCall::query, true},
                                              {"output", &AttendCall::output, true},
                                              {"lse", &AttendCall::lse, true},
                                              {"kv_lengths", &AttendCall::kv_lengths, false},
                                              {"key_begin", &AttendCall::key_begin, false},
                                              {"key_end", &AttendCall::key_end, false}}) {
    std::vector<BadTensor> all = bad_tensors(), strides = bad_strides();
    if (strided) all.insert(all.end(), strides.begin(), strides.end());
    for (const BadTensor& bad : all) {
      AttendCall call = attend_;
      bad.spoil(call.*tensor);
      SCOPED_TRACE(sentence(name, " ", bad.what));
      // A query of another shape contradicts the plan first.
      const bool plan_first = name == "query" && bad.what == "shape";
      expect_says(attend(call, plan_, kShape), bad.code, plan_first ? "" : name);
      if (!plan_first) expect_says(attend(call, plan_, kShape), bad.code, bad.what);
    }
  }
  expect_untouched();
}

TEST_F(Refusals, NamesEveryBadTensorOfTheCache) {
  struct Member {
    std::string name;
    TensorView CacheView::*tensor;
  };
  for (const auto& [name, tensor] :
       {Member{"key cache", &CacheView::key}, {"value cache", &CacheView::value}}) {
    std::vector<BadTensor> all = bad_tensors(), strides = bad_strides();
    all.insert(all.end(), strides.begin(), strides.end());
    all.push_back(
        {"16 bytes", StatusCode::kUnsupported, [](TensorView& t) { t.strides[1] = 129; }});
    for (const BadTensor& bad : all) {
      AttendCall call = attend_;
      bad.spoil(call.cache.*tensor);
      SCOPED_TRACE(sentence(name, " ", bad.what));
      expect_says(attend(call, plan_, kShape), bad.code, name);
      expect_says(attend(call, plan_, kShape), bad.code, bad.what);
    }
  }
  AttendCall call = attend_;
  call.cache.block_table.shape[0] = 3;
  expect_says(attend(call, plan_, kShape), StatusCode::kRefused, "block table");
  call = attend_;
  call.cache.value.shape[0] = 7;
  expect_says(attend(call, plan_, kShape), StatusCode::kRefused, "value pages");
  expect_untouched();
}

TEST_F(Refusals, RefusesOutputsThatOverlapThemselves) {
  AttendCall call = attend_;
  call.output.strides[1] = 0;
  expect_says(attend(call, plan_, kShape), StatusCode::kRefused, "stride 0");
  AppendCall bad = append_;
  bad.cache.key.strides[0] = 0;
  expect_says(append(bad, kShape), StatusCode::kRefused, "stride 0");
  expect_untouched();
}

TEST_F(Refusals, RefusesHeadTensorsOfAnotherSize) {
  AttendCall call = attend_;
  call.sinks = dense_view(lse_.get(), DType::kF32, {3}, 1);
  expect_says(attend(call, plan_, kShape), StatusCode::kRefused, "sinks");
  call = attend_;
  call.alibi_slopes = dense_view(lse_.get(), DType::kF16, {4}, 1);
  expect_says(attend(call, plan_, kShape), StatusCode::kRefused, "alibi_slopes");
  expect_untouched();
}

TEST_F(Refusals, NamesEveryBadTensorOfAMerge) {
  // Two states of five tokens: their memory is never looked at.
  const MergeCall good{.outputs = dense_view(key_.get(), DType::kF16, {2, 5, 4, 64}, 4),
                       .lses = dense_view(lse_.get(), DType::kF32, {2, 5, 4}, 3),
                       .output = attend_.output,
                       .lse = attend_.lse};
  struct Member {
    std::string name;
    TensorView MergeCall::*tensor;
  };
  for (const auto& [name, tensor] :
       {Member{"outputs", &MergeCall::outputs}, Member{"lses", &MergeCall::lses},
        Member{"output", &MergeCall::output}, Member{"lse", &MergeCall::lse}}) {
    for (const BadTensor& bad : bad_tensors()) {
      MergeCall call = good;
      bad.spoil(call.*tensor);
      SCOPED_TRACE(sentence(name, " ", bad.what));
      expect_says(merge(call, kShape), bad.code, name);
    }
  }
  MergeCall none = good;
  none.outputs.shape[0] = 0;
  expect_says(merge(none, kShape), StatusCode::kRefused, "states");
  expect_untouched();
}

TEST_F(Refusals, RefusesVThatDoesNotLieInK) {
  AttentionShape shape = kShape;
  shape.value_in_key = true;
  expect_says(attend(attend_, plan_, shape), StatusCode::kRefused, "memory and the strides");
  expect_says(append(append_, shape), StatusCode::kRefused, "memory and the strides");
  expect_untouched();
}

TEST_F(Refusals, RefusesAPlanOfAnotherBatch) {
  Plan plan = plan_;
  plan.tokens += 1;
  expect_says(attend(attend_, plan, kShape), StatusCode::kRefused, "plan");
  plan = plan_;
  plan.requests -= 1;
  expect_says(attend(attend_, plan, kShape), StatusCode::kRefused, "plan");
  plan = plan_;
  plan.variant = 1000;
  expect_says(attend(attend_, plan, kShape), StatusCode::kRefused, "variant");
  plan = plan_;
  plan.workspace_bytes = 1;
  expect_says(attend(attend_, plan, kShape), StatusCode::kRefused, "workspace");
  expect_untouched();
}

// A plan is plain data: one that was made for other shapes must not reach a kernel.
TEST_F(Refusals, RefusesAPlanOfAnotherShape) {
  AttentionShape latent = kShape;
  latent.kv_heads = 1;
  latent.head_dim = 576;
  latent.value_dim = 512;
  latent.value_in_key = true;
  const BatchDescription batch{.query_lengths = kLengths, .kv_lengths = kLengths};
  const Plan of_latent = take(make_plan(latent, batch));
  expect_says(attend(attend_, of_latent, kShape), StatusCode::kRefused, "another shape");
  AttentionShape turning = kShape;
  turning.rope = {.pairing = Rope::Pairing::kNeox, .dims = 64};
  attend_.positions = dense_view(positions_.get(), DType::kI64, {5}, 1);
  expect_says(attend(attend_, plan_, turning), StatusCode::kRefused, "another shape");
  expect_untouched();
}

TEST(Shapes, AreRefusedOrUnsupportedWithAReason) {
  struct BadShape {
    StatusCode code;
    std::string what;
    std::function<void(AttentionShape&)> spoil;
  };
  using enum StatusCode;
  using S = AttentionShape&;
  for (const auto& [code, what, spoil] :
       std::vector<BadShape>{{kRefused, "query heads", [](S s) { s.query_heads = 3; }},
                             {kRefused, "query heads", [](S s) { s.query_heads = 0; }},
                             {kRefused, "query heads", [](S s) { s.kv_heads = 0; }},
                             {kUnsupported, "query heads", [](S s) { s.query_heads = 131072; }},
                             {kRefused, "dtype", [](S s) { s.dtype = DType::kI32; }},
                             {kRefused, "head_dim", [](S s) { s.head_dim = 0; }},
                             {kUnsupported, "head_dim", [](S s) { s.head_dim = 68; }},
                             {kUnsupported, "page_slots", [](S s) { s.page_slots = 0; }},
                             {kUnsupported, "page_slots", [](S s) { s.page_slots = 24; }},
                             {kUnsupported, "page_slots", [](S s) { s.page_slots = 512; }},
                             {kRefused, "scale", [](S s) { s.scale = NAN; }},
                             {kRefused, "scale", [](S s) { s.scale = INFINITY; }},
                             {kRefused, "softcap", [](S s) { s.softcap = -1; }},
                             {kRefused, "softcap", [](S s) { s.softcap = NAN; }},
                             {kUnsupported, "head_dim", [](S s) { s.head_dim = 264; }},
                             {kRefused, "value_dim", [](S s) { s.value_dim = -8; }},
                             {kUnsupported, "value_dim", [](S s) { s.value_dim = 264; }},
                             {kRefused, "inside of K",
                              [](S s) {
                                s.value_in_key = true;
                                s.value_dim = 72;
                              }},
                             {kUnsupported, "latent",
                              [](S s) {
                                s.dtype = DType::kF32;
                                s.value_in_key = true;
                                s.head_dim = 576;
                                s.value_dim = 512;
                              }},
                             {kRefused, "causal", [](S s) { s.causal = static_cast<Causal>(3); }},
                             {kRefused, "window", [](S s) { s.window_left = -2; }},
                             {kRefused, "window", [](S s) { s.window_right = -2; }}}) {
    AttentionShape shape = kShape;
    spoil(shape);
    const Status status = check_shape(shape);
    EXPECT_EQ(status.code(), code) << status.text();
    EXPECT_NE(status.text().find(what), std::string::npos) << status.text();
  }
}

TEST(Plans, AreRefusedWithAReason) {
  const std::vector<int32_t> two = {1, 2}, one = {1}, negative = {1, -1},
                             huge = {INT32_MAX, INT32_MAX};
  const auto code = [](const BatchDescription& b) { return make_plan(kShape, b).status().code(); };
  EXPECT_EQ(code({.query_lengths = two, .kv_lengths = two}), StatusCode::kOk);
  EXPECT_EQ(code({.query_lengths = two, .kv_lengths = one}), StatusCode::kRefused);
  EXPECT_EQ(code({.query_lengths = negative, .kv_lengths = two}), StatusCode::kRefused);
  EXPECT_EQ(code({.query_lengths = two, .kv_lengths = negative}), StatusCode::kRefused);
  EXPECT_EQ(code({.query_lengths = huge, .kv_lengths = two}), StatusCode::kUnsupported);
  EXPECT_EQ(code({.query_lengths = two, .kv_lengths = huge}), StatusCode::kUnsupported);
  EXPECT_EQ(code({.query_lengths = two, .kv_lengths = two, .split_slots = UINT32_MAX}),
            StatusCode::kUnsupported);
  EXPECT_EQ(code({.query_lengths = two, .kv_lengths = two, .variant = "decode"}),
            StatusCode::kUnsupported);
  EXPECT_EQ(code({.query_lengths = two, .kv_lengths = two, .variant = "best"}),
            StatusCode::kUnsupported);
}

}  // namespace
}  // namespace kvattn
