// What a plan asks for: workspace by queries and splits, never by queries times keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kvattn/attention.h"

namespace kvattn {
namespace {

constexpr int64_t kAlignment = 256;

struct Batch {
  std::vector<int32_t> query_lengths, kv_lengths;
};

const std::vector<Batch> kBatches = {
    {{1}, {70000}}, {{1, 1, 1}, {0, 1, 5000}}, {{4000}, {4000}}, {{1, 300, 0}, {9000, 300, 40}}};

std::vector<AttentionShape> shapes() {
  AttentionShape plain{.query_heads = 8,
                       .kv_heads = 2,
                       .head_dim = 128,
                       .page_slots = 16,
                       .dtype = DType::kF16,
                       .scale = 1};
  AttentionShape narrow = plain, fp32 = plain, codes = plain, turned = plain, latent = plain;
  narrow.value_dim = 64;
  fp32.dtype = DType::kF32;
  codes.cache_dtype = DType::kE4M3;
  turned.rope = {.pairing = Rope::Pairing::kNeox, .dims = 128};
  latent.head_dim = 576;
  latent.value_dim = 512;
  latent.value_in_key = true;
  return {plain, narrow, fp32, codes, turned, latent};
}

/// O(queries * splits * heads * (V dimension + 2)), and with RoPE the turned queries.
int64_t bound_of(const Plan& plan, const AttentionShape& s) {
  const int64_t partials = plan.splits_max > 1 ? plan.tokens * s.query_heads * plan.splits_max : 0;
  const int64_t turned =
      s.rope.dims > 0 ? plan.tokens * s.query_heads * s.head_dim * dtype_bytes(s.dtype) : 0;
  return partials * (s.dim_of_value() + 2) * int64_t{sizeof(float)} + turned + kAlignment;
}

void expect_bounded(const AttentionShape& shape, const Batch& lengths, BatchDescription batch) {
  batch.query_lengths = lengths.query_lengths;
  batch.kv_lengths = lengths.kv_lengths;
  const StatusOr<Plan> plan = make_plan(shape, batch);
  if (!plan.ok()) {  // a variant that is not offered for the shape or the batch
    EXPECT_EQ(plan.status().code(), StatusCode::kUnsupported) << plan.status().text();
    return;
  }
  SCOPED_TRACE(std::string(variant_name(*plan)));
  EXPECT_LE(static_cast<int64_t>(plan->workspace_bytes), bound_of(*plan, shape));
  EXPECT_EQ(make_plan(shape, batch)->workspace_bytes, plan->workspace_bytes);
  const int64_t longest = *std::ranges::max_element(batch.kv_lengths);
  if (plan->splits_max > 1) {
    EXPECT_GE(int64_t{plan->splits_max} * plan->split_slots, longest);
    EXPECT_LT((int64_t{plan->splits_max} - 1) * plan->split_slots, longest);
    EXPECT_GE(plan->split_slots, batch.split_slots > 0 ? batch.split_slots : 256);
  }
}

// Fails when partial results are kept for a slot or a tile instead of a split, or for heads or
// dimensions that are not there.
TEST(Plans, AskForWorkspaceByQueriesAndSplits) {
  for (const AttentionShape& shape : shapes()) {
    for (const Batch& lengths : kBatches) {
      for (const char* const* name = variant_names(); *name != nullptr; ++name) {
        expect_bounded(shape, lengths, {.variant = *name});
        expect_bounded(shape, lengths, {.variant = *name, .split_slots = 96});
      }
      expect_bounded(shape, lengths, {});
      expect_bounded(shape, lengths, {.batch_invariant = true});
      expect_bounded(shape, lengths, {.multiprocessors = 132});
    }
  }
}

// Fails when throughput mode gives a decode step of heads that share K and V, or of codes, to the
// kernel without tensor cores, which reads more.
TEST(Plans, ThroughputModeDecodesOnTensorCores) {
  const std::vector<int32_t> one = {1}, slots = {4096};
  const auto variant = [&](const AttentionShape& shape, uint32_t multiprocessors) {
    const BatchDescription batch = {
        .query_lengths = one, .kv_lengths = slots, .multiprocessors = multiprocessors};
    return std::string(variant_name(*make_plan(shape, batch)));
  };
  AttentionShape shape = shapes()[0];
  EXPECT_EQ(variant(shape, 132), "decode_grouped");
  EXPECT_EQ(variant(shape, 0), "decode");
  shape.query_heads = shape.kv_heads;
  EXPECT_EQ(variant(shape, 132), "decode");
  shape.cache_dtype = DType::kI8;
  EXPECT_EQ(variant(shape, 132), "decode_grouped");
  shape.dtype = DType::kF32;
  EXPECT_EQ(variant(shape, 132), "decode");
}

}  // namespace
}  // namespace kvattn
