// Which copies may be one launch: those that no other one of it disturbs. And what they leave
// where.
#include "impl/engine/slot_copies.h"

#include <gtest/gtest.h>

#include "impl/kernels/copy_slots.h"
#include "kvattn/pool.h"

namespace kvattn {
namespace {

SlotCopy copy_of(int32_t from, int32_t to, int32_t slots = 16) {
  return {.group = Group{0}, .from = Page{from}, .to = Page{to}, .slots = slots};
}

TEST(SlotCopies, IndependentOnesAreOneLaunch) {
  const std::vector<SlotCopy> beams = {copy_of(1, 9), copy_of(1, 10), copy_of(2, 11)};
  EXPECT_EQ(independent_copies(beams), 3u);
  EXPECT_EQ(independent_copies({}), 0u);
}

TEST(SlotCopies, ALaunchEndsWhereOneReadsWhatAnotherWrites) {
  EXPECT_EQ(independent_copies(std::vector{copy_of(1, 2), copy_of(2, 3), copy_of(4, 5)}), 1u);
}

TEST(SlotCopies, ALaunchEndsWhereOneWritesWhatAnotherReadsOrWrites) {
  EXPECT_EQ(independent_copies(std::vector{copy_of(1, 2), copy_of(3, 1)}), 1u);
  EXPECT_EQ(independent_copies(std::vector{copy_of(1, 2), copy_of(3, 2)}), 1u);
}

TEST(SlotCopies, OtherSlotsOfAPageDisturbNobody) {
  SlotCopy tail = copy_of(3, 2, 4);
  tail.from_slot = tail.to_slot = 12;
  EXPECT_EQ(independent_copies(std::vector{copy_of(1, 2, 12), tail}), 2u);
  tail.to_slot = 11;
  EXPECT_EQ(independent_copies(std::vector{copy_of(1, 2, 12), tail}), 1u);
}

TEST(SlotCopies, GroupsAndTheListsLengthEndALaunch) {
  SlotCopy other = copy_of(3, 4);
  other.group = Group{1};
  EXPECT_EQ(independent_copies(std::vector{copy_of(1, 2), other}), 1u);
  std::vector<SlotCopy> many;
  for (int32_t i = 0; i < kCopiesMax + 5; ++i) many.push_back(copy_of(0, i + 1));
  EXPECT_EQ(independent_copies(many), static_cast<size_t>(kCopiesMax));
}

/// Bytes of device memory that count from 0.
std::vector<uint8_t> copied(const SlotCopy& copy, ScaleGranularity granularity, int64_t slot_bytes,
                            std::vector<float>& scales) {
  StoreSize size{.groups = {{.layers = 1}},
                 .page_slots = 4,
                 .layout = {.stored_key = slot_bytes, .stored_value = slot_bytes}};
  size.format.scales = granularity;
  std::vector<uint8_t> bytes(4 * 4 * slot_bytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  DeviceMemory key = *allocate_device(bytes.size()), value = *allocate_device(bytes.size());
  DeviceMemory scale = *allocate_device(scales.size() * sizeof(float));
  for (void* to : {key.get(), value.get()}) {
    EXPECT_EQ(cudaMemcpy(to, bytes.data(), bytes.size(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  const size_t scale_bytes = scales.size() * sizeof(float);
  EXPECT_EQ(cudaMemcpy(scale.get(), scales.data(), scale_bytes, cudaMemcpyHostToDevice),
            cudaSuccess);
  auto* first = static_cast<float*>(scale.get());
  const PoolPlace pool{.key = key.get(),
                       .value = value.get(),
                       .key_scale = first,
                       .value_scale = first + scales.size() / 2};
  EXPECT_TRUE(copy_slots({&copy, 1}, size, pool, nullptr).ok());
  EXPECT_EQ(cudaMemcpy(bytes.data(), value.get(), bytes.size(), cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(cudaMemcpy(scales.data(), scale.get(), scale_bytes, cudaMemcpyDeviceToHost),
            cudaSuccess);
  return bytes;
}

// Fails when slots narrower than 16 bytes are copied in part, or when codes leave their scales.
TEST(SlotCopies, TakeNarrowSlotsAndTheirScalesAlong) {
  const SlotCopy copy = copy_of(1, 3, 3);
  for (const int64_t slot_bytes : {4, 8, 16, 24}) {
    std::vector<float> by_token(2 * 4 * 4), by_page = {0, 1, 2, 3, 10, 11, 12, 13};
    for (size_t i = 0; i < by_token.size(); ++i) by_token[i] = static_cast<float>(i);
    const auto bytes = copied(copy, ScaleGranularity::kToken, slot_bytes, by_token);
    for (int64_t i = 0; i < 4 * slot_bytes; ++i) {
      const int64_t from = (i < 3 * slot_bytes ? 4 : 12) * slot_bytes + i;
      EXPECT_EQ(bytes[12 * slot_bytes + i], static_cast<uint8_t>(from)) << slot_bytes;
    }
    for (const size_t first : {size_t{0}, size_t{16}}) {
      const std::vector<float> page(by_token.begin() + first + 12, by_token.begin() + first + 16);
      const float f = static_cast<float>(first);
      EXPECT_EQ(page, (std::vector<float>{f + 4, f + 5, f + 6, f + 15})) << slot_bytes;
    }
    copied(copy, ScaleGranularity::kPage, slot_bytes, by_page);
    EXPECT_EQ(by_page, (std::vector<float>{0, 1, 2, 1, 10, 11, 12, 11})) << slot_bytes;
  }
}

}  // namespace
}  // namespace kvattn
