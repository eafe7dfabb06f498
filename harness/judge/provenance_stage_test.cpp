// Tokens in wrong places, named after whose they are.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "harness/judge/judge_fixture.h"
#include "harness/plugin/kverify_plugin.h"
#include "harness/simt/control/kv_simt_control.h"

namespace kv {
namespace {

TEST(Judge, SlotShiftedByOne) {
  const FakeFaults faults{.written_slot = [](const PlannedRow& row, int64_t slot) {
    return row.append_slots == 1 && row.request == RequestId{1} ? slot + 1 : slot;
  }};
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kProvenance, "wrong-slot");
  EXPECT_NE(v.message.find("slot 6 of request 1"), std::string::npos) << v.message;
}

TEST(Judge, OlderSlotOverwritten) {
  const FakeFaults faults{.written_slot = [](const PlannedRow& row, int64_t slot) {
    return row.append_slots == 1 && row.request == RequestId{0} ? slot - 1 : slot;
  }};
  EXPECT_FAILS(judge(small_case(), faults), Stage::kProvenance, "wrong-slot");
}

TEST(Judge, SlotNotWritten) {
  const FakeFaults faults{.written_slot = [](const PlannedRow& row, int64_t slot) {
    return row.append_slots == 1 ? -1 : slot;
  }};
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kProvenance, "unwritten-slot");
  EXPECT_EQ(v.divergence->tensor, "key cache");
  EXPECT_GE(v.divergence->request, 0);
}

PageImage& image(OpObservation& op, uint32_t layer, bool value, size_t nth) {
  for (PageImage& p : op.pages) {
    if (p.layer == layer && p.value == value && nth-- == 0) return p;
  }
  throw std::runtime_error("no such image");
}

constexpr size_t kKeySlotBytes = 2 * 32 * 2;  // heads, dimensions, bytes

// The decode step writes one slot of each request: both pages get the same new token.
TEST(Judge, ForeignToken) {
  const auto faults = at_end([](Observation& o) {
    PageImage& first = image(o.ops[3], 0, false, 0);
    PageImage& second = image(o.ops[3], 0, false, 1);
    // Request 0's new slot is 11, offset 3 of its page; request 1's is 6, offset 2.
    for (PageImage* p : {&first, &second}) {
      PageImage& other = p == &first ? second : first;
      std::vector<std::byte> token(other.bytes.begin() + 3 * kKeySlotBytes,
                                   other.bytes.begin() + 4 * kKeySlotBytes);
      const bool poison = token[0] == std::byte{0xff} && token[1] == std::byte{0xff};
      if (poison) continue;
      p->bytes.edit([&](auto& bytes) {
        std::copy(token.begin(), token.end(), bytes.begin() + 2 * kKeySlotBytes);
      });
      return;
    }
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kProvenance, "foreign-slot");
  EXPECT_NE(v.message.find("of request 0"), std::string::npos) << v.message;
}

TEST(Judge, KeyInPlaceOfValue) {
  Case c = small_case();
  c.shape.head_dim_v = 32;
  const auto faults = at_end([](Observation& o) {
    image(o.ops[2], 1, true, 0).bytes = image(o.ops[2], 1, false, 0).bytes;
  });
  const Verdict v = judge(c, faults);
  EXPECT_FAILS(v, Stage::kProvenance, "wrong-slot");
  EXPECT_NE(v.message.find("K of slot"), std::string::npos) << v.message;
  EXPECT_EQ(v.divergence->tensor, "value cache");
}

TEST(Judge, OneDamagedBit) {
  const auto faults = at_end([](Observation& o) {
    image(o.ops[2], 1, false, 1).bytes.edit([](auto& bytes) { bytes[5] ^= std::byte{1}; });
  });
  const Verdict v = judge(small_case(), faults);
  EXPECT_FAILS(v, Stage::kProvenance, "damaged-slot");
  EXPECT_EQ(v.divergence->dimension, 2);
  EXPECT_EQ(v.divergence->layer, 1);
}

TEST(Judge, StrayWriteToAFreePage) {
  const auto faults = at_end([](Observation& o) {
    PageImage stray = o.ops[2].pages.front();
    for (uint32_t page = 0; page < 32; ++page) {
      bool used = false;
      for (const PageImage& p : o.ops[2].pages) used = used || p.page.value == page;
      if (!used) stray.page = PageId{page};
    }
    std::vector<std::byte> bytes(stray.bytes.size(), std::byte{0xff});
    bytes[40] = std::byte{0};
    stray.bytes = bytes;
    o.ops[2].pages.push_back(stray);
  });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kProvenance, "stray-write");
}

TEST(Judge, StrayWriteByAnOperationThatWritesNothing) {
  const auto faults = at_end([](Observation& o) {
    PageImage stray = o.ops[2].pages.front();
    o.ops[0].pages.push_back(stray);
  });
  EXPECT_FAILS(judge(small_case(), faults), Stage::kProvenance, "stray-write");
}

TEST(Judge, RecycledPagesMayHoldOldBytes) {
  Case c = small_case();
  c.ops.push_back(op::Finish{.request = RequestId{0}});
  c.ops.push_back(op::Admit{.request = RequestId{2}, .prompt_tokens = 3});
  c.ops.push_back(op::Step{.rows = {{.request = RequestId{2}, .append = 3, .queries = 3}}});
  const Verdict v = judge(c);
  EXPECT_EQ(v.outcome, Outcome::kPass) << v.message;
}

}  // namespace
}  // namespace kv
