// The seeds of the corpus, with what every query row sees written out.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "harness/case/features.h"
#include "harness/case/full_case.h"
#include "harness/case/json.h"
#include "harness/case/limits.h"
#include "harness/case/show.h"
#include "harness/case/text_file.h"
#include "harness/case/timeline.h"

namespace kv {
namespace {

namespace fs = std::filesystem;
const fs::path kSeeds = fs::path(KV_SOURCE_DIR) / "corpus" / "seeds";

Case seed(const std::string& name) {
  Result<Case> c = load_case((kSeeds / (name + ".json")).string());
  EXPECT_TRUE(c.ok()) << c.error().message;
  return c.ok() ? *c : Case{};
}

// The visible slots of every query row of the last step, row by row of the batch.
std::vector<std::string> last_step_matrix(const Case& c) {
  Result<Timeline> timeline = Timeline::create(c);
  EXPECT_TRUE(timeline.ok()) << timeline.error().message;
  std::vector<std::string> lines;
  for (uint32_t i = 0; i < c.ops.size(); ++i) {
    const PlannedStep step = timeline->apply(i);
    if (!step.rows.empty()) lines.clear();
    for (const PlannedRow& row : step.rows) {
      for (uint32_t q = 0; q < row.queries; ++q) {
        std::string line;
        for (const uint8_t v : visible_slots(c, timeline->sequence(row.request), row, {q})) {
          line += v ? '1' : '0';
        }
        lines.push_back(line);
      }
    }
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Seeds, LeftPaddingUnderACausalMaskLeavesTwoPadRowsEmpty) {
  EXPECT_EQ(last_step_matrix(seed("pad_left_causal")),
            (Lines{"00000", "00000", "00100", "00110", "00111"}));
}
TEST(Seeds, LeftPaddingWithoutAMask) {
  EXPECT_EQ(last_step_matrix(seed("pad_left_full")),
            (Lines{"00111", "00111", "00111", "00111", "00111"}));
}
TEST(Seeds, RightPaddingUnderACausalMask) {
  EXPECT_EQ(last_step_matrix(seed("pad_right_causal")),
            (Lines{"10000", "11000", "11100", "11100", "11100"}));
}
TEST(Seeds, RightPaddingWithoutAMask) {
  EXPECT_EQ(last_step_matrix(seed("pad_right_full")),
            (Lines{"11100", "11100", "11100", "11100", "11100"}));
}
TEST(Seeds, TheCausalTriangle) {
  EXPECT_EQ(last_step_matrix(seed("causal_triangle")), (Lines{"1000", "1100", "1110", "1111"}));
}
TEST(Seeds, OneTokenDecodeSeesEverything) {
  EXPECT_EQ(last_step_matrix(seed("one_token_decode")), (Lines{"11111111"}));
}
TEST(Seeds, QueriesBeyondTheKeysAreEmpty) {
  EXPECT_EQ(last_step_matrix(seed("queries_beyond_keys")),
            (Lines{"0000", "0000", "1000", "1100", "1110", "1111"}));
}

TEST(Seeds, FeaturesAreThoseThatTheSeedsShow) {
  const FeatureSet pad = features_of(seed("pad_left_causal"));
  EXPECT_EQ(pad[feature("pad_query_row")], 2u);
  EXPECT_EQ(pad[feature("empty_row")], 0u) << "PAD rows are not live";
  EXPECT_EQ(features_of(seed("queries_beyond_keys"))[feature("empty_row")], 2u);
  const FeatureSet decode = features_of(seed("one_token_decode"));
  EXPECT_EQ(decode[feature("decode")], 1u);
  EXPECT_EQ(decode[feature("prefill_whole")], 1u);
  EXPECT_EQ(decode[feature("length_mod_page_0")], 1u);
  EXPECT_EQ(decode[feature("length_mod_page_minus_1")], 1u);
  EXPECT_EQ(decode[feature("page_reuse")], 0u);
  const FeatureSet mixed = features_of(seed("mixed_batch_page_reuse"));
  EXPECT_EQ(mixed[feature("mixed_batch")], 1u);
  EXPECT_EQ(mixed[feature("cancel")], 1u);
  EXPECT_EQ(mixed[feature("page_reuse")], 2u);
  EXPECT_TRUE(mixed.has(feature("far_pages")) && mixed.has(feature("gqa")));
  EXPECT_TRUE(mixed.has(feature("pages_out_of_order")));
}

TEST(Seeds, EveryFeatureHasADistinctName) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kFeatureCount; ++i) names.insert(feature_name(static_cast<Feature>(i)));
  EXPECT_EQ(names.size(), kFeatureCount);
}

TEST(Seeds, EveryFileIsCanonicalAndNamedAsItSays) {
  uint32_t count = 0;
  for (const auto& entry : fs::directory_iterator(kSeeds)) {
    if (entry.path().extension() != ".json") continue;
    ++count;
    const std::string text = read_text_file(entry.path().string(), limits::kFileBytesMax).value();
    const Result<Case> c = parse_case(text, entry.path().filename().string());
    ASSERT_TRUE(c.ok()) << c.error().message;
    EXPECT_EQ(case_to_json(*c), text) << entry.path();
    EXPECT_EQ(c->name, entry.path().stem().string());
    EXPECT_TRUE(Timeline::create(*c).ok()) << entry.path();
  }
  EXPECT_GE(count, 8u);
}

TEST(Show, WritesOperationsTablesAndMatrices) {
  const std::string text = show_case(seed("pad_left_causal"));
  for (const char* part :
       {"case pad_left_causal\n", "1 layer, 2 query heads over 1 kv head", "mask   causal bottom",
        "   0  admit request 0: prompt of 3 tokens\n", "   1  step of 1 row\n",
        "append 3 tokens, 2 PAD before; 5 query rows over 5 slots; pages",
        "      query    0 at slot    0: 00000  sees 0, PAD\n",
        "      query    4 at slot    4: 00111  sees 3\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Show, ElidesWhatIsHuge) {
  Case c = seed("causal_triangle");
  c.pool.page_count = 400;
  std::get<op::Step>(c.ops[1]).rows[0] = {.append = 1000, .queries = 1000};
  for (uint32_t i = 1; i <= 300; ++i) c.ops.push_back(op::Admit{.request = RequestId(i)});
  const std::string text = show_case(c);
  EXPECT_LT(text.size(), 20000u);
  for (const char* part :
       {"... (250 pages)", "(slots 0 to 903 are not shown)", "(queries 0 to 967 are not shown)",
        "(102 more operations are not shown)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

TEST(Show, KnowsEveryOperation) {
  const std::string text = show_case(full_case());
  for (const char* part :
       {"admit request 2: prompt of 20 tokens, the first 4 as request 1, side input 7, positions "
        "from -5",
        "append 3 tokens to request 1", "fork request 1 into 2", "reorder 1<-2 2<-2",
        "truncate request 1 to 9 slots", "drop slots 2 to 4 of request 1", "cancel request 1",
        "finish request 2", "preempt request 1 by swapping", "resume request 1", "evict 4 pages",
        "defragment", "save request 1", "restore request 2 from what request 1 saved",
        "step 2 completes", "allocation 3 from here fails",
        "hostile call foreign_handle for request 2"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Show, SaysWhyACaseCannotBePlanned) {
  Case c = seed("causal_triangle");
  c.ops.push_back(op::Fork{RequestId(0), RequestId(1)});
  const std::string text = show_case(c);
  EXPECT_NE(text.find("not planned: ops[2]: operation 'fork'"), std::string::npos) << text;
  EXPECT_NE(text.find("   2  fork request 0 into 1\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace kv
