// Stored elements and values where the plugin rotates and quantises: the correct twin is silent,
// every planted fault is found where it happens.
#include "harness/judge/conversion.h"

#include <gtest/gtest.h>

#include <set>

#include "harness/case/data.h"
#include "harness/judge/judge_fixture.h"

namespace kv {
namespace {

Case converted_case(DType type, KvScale scale, RopePairing pairing) {
  Case c = small_case();
  c.shape.kv_dtype = type;
  c.shape.kv_scale = scale;
  if (pairing != RopePairing::kNone) c.shape.rope = {.pairing = pairing, .dims = 24};
  std::get<op::Admit>(c.ops[1]).position_offset = 1000;
  return c;
}

TEST(Conversion, CorrectTwinsAreSilent) {
  for (const DType type : {DType::kF16, DType::kE4m3, DType::kE5m2, DType::kI8}) {
    for (const KvScale scale :
         {KvScale::kNone, KvScale::kTensor, KvScale::kHead, KvScale::kToken, KvScale::kPage}) {
      if (type == DType::kF16 && scale != KvScale::kNone) continue;
      for (const RopePairing pairing :
           {RopePairing::kNone, RopePairing::kNeox, RopePairing::kInterleaved}) {
        const Verdict v = judge(converted_case(type, scale, pairing));
        EXPECT_EQ(v.outcome, Outcome::kPass)
            << dtype_name(type) << " " << static_cast<int>(scale) << ": " << v.message;
        EXPECT_GT(v.stats.slots_judged, 0u);
      }
    }
  }
}

/// A code of the first slot that operation 2 wrote is changed to its neighbour, or to NaN.
FakeFaults with_code(bool value, int by) {
  return at_end([=](Observation& o) {
    for (PageImage& image : o.ops[2].pages) {
      if (image.value != value || image.layer != 0) continue;
      image.bytes.edit([by](auto& bytes) {
        bytes[5] = by == 0 ? std::byte{0x7f} : std::byte(uint8_t(bytes[5]) + by);
      });
      return;
    }
  });
}

TEST(Conversion, OneCodeAsideIsFound) {
  const Case c = converted_case(DType::kE4m3, KvScale::kToken, RopePairing::kNeox);
  for (const bool value : {false, true}) {
    for (const int by : {2, -2, 0}) {
      const Verdict v = judge(c, with_code(value, by));
      EXPECT_FAILS(v, Stage::kProvenance, "damaged-slot");
      EXPECT_NE(v.message.find("is admissible"), std::string::npos) << v.message;
      EXPECT_NE(v.message.find("scale"), std::string::npos) << v.message;
    }
  }
}

TEST(Conversion, TokensOfOthersAreRecognised) {
  const Case c = converted_case(DType::kI8, KvScale::kTensor, RopePairing::kNeox);
  FakeFaults faults;
  faults.written_slot = [](const PlannedRow& row, int64_t s) {
    return row.append_slots > 1 && s < 2 ? 1 - s : s;  // the first two slots exchanged
  };
  EXPECT_FAILS(judge(c, faults), Stage::kProvenance, "wrong-slot");
}

TEST(Conversion, ValuesAreJudgedWithTheirScales) {
  const Case c = converted_case(DType::kE4m3, KvScale::kToken, RopePairing::kInterleaved);
  const Verdict v = judge(c, dropped_key());
  EXPECT_EQ(v.outcome, Outcome::kFail) << v.message;
  EXPECT_EQ(v.stage, Stage::kInterval) << v.message;
}

TEST(Conversion, ScalesDifferWhereTheGranularitySaysSo) {
  Case c = converted_case(DType::kI8, KvScale::kToken, RopePairing::kNone);
  Timeline timeline = Timeline::create(c).value();
  for (uint32_t i = 0; i < 3; ++i) timeline.apply(i);
  const Sequence& sequence = timeline.sequence(RequestId{0});
  const auto scale = [&](uint64_t slot, const ScalePlace& place) {
    return slot_scale(c, sequence, slot, place);
  };
  std::set<float> tokens, pages;
  for (uint64_t s = 0; s < 11; ++s) tokens.insert(scale(s, {}));
  EXPECT_GT(tokens.size(), 2u);
  EXPECT_EQ(scale(3, {.head = 0}), scale(3, {.head = 1}));
  c.shape.kv_scale = KvScale::kPage;
  for (uint64_t s = 0; s < 4; ++s) pages.insert(scale(s, {}));
  EXPECT_EQ(pages.size(), 1u) << "four slots to a page";
  c.shape.kv_scale = KvScale::kNone;
  EXPECT_EQ(scale(3, {}), 1.0f);
  EXPECT_EQ(scale_layout(c).size, 0u);
}

TEST(Conversion, TheDigestSeesScalesAndPositions) {
  const Case c = converted_case(DType::kE4m3, KvScale::kToken, RopePairing::kNeox);
  Case moved = c;
  std::get<op::Admit>(moved.ops[1]).position_offset += 1;
  EXPECT_NE(input_digest(c), input_digest(moved));
  Case page = c;
  page.shape.kv_scale = KvScale::kPage;
  EXPECT_NE(input_digest(c), input_digest(page));
}

}  // namespace
}  // namespace kv
