// Damaged case files: one clear error or a lawful case, never a crash, a hang or a throw. Runs
// under AddressSanitizer and UBSan as well (KV_SANITIZE).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "harness/case/features.h"
#include "harness/case/full_case.h"
#include "harness/case/json.h"
#include "harness/case/show.h"
#include "harness/case/timeline.h"
#include "harness/case/utf8.h"
#include "harness/case/validate.h"
#include "harness/core/philox.h"

namespace kv {
namespace {

// Texts to damage: one with every field, and the seeds, which Timeline accepts.
std::vector<std::string> originals() {
  std::vector<std::string> texts = {case_to_json(full_case())};
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(KV_SOURCE_DIR) / "corpus/seeds")) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) texts.push_back(case_to_json(load_case(path.string()).value()));
  return texts;
}

// Whatever the text, everything that follows must cope. Returns whether it was accepted.
bool survives(const std::string& text) {
  const Result<Case> c = parse_case(text, "hostile");
  if (!c.ok()) {
    EXPECT_EQ(c.error().kind, ErrorKind::kBadInput);
    EXPECT_TRUE(c.error().message.starts_with("hostile: ")) << c.error().message;
    EXPECT_LT(c.error().message.size(), 600u) << c.error().message;
    EXPECT_TRUE(printable_utf8(c.error().message)) << "a message must not carry raw bytes";
    EXPECT_EQ(c.error().message.find('\n'), std::string::npos) << c.error().message;
    return false;
  }
  EXPECT_TRUE(check_case(*c).ok());
  EXPECT_EQ(parse_case(case_to_json(*c), "again").value(), *c);
  const Result<Timeline> timeline = Timeline::create(*c);
  if (!timeline.ok()) {
    EXPECT_FALSE(timeline.error().message.empty());
  }
  EXPECT_FALSE(show_case(*c).empty());
  features_of(*c);
  return true;
}

struct Outcomes {
  uint32_t accepted = 0, refused = 0;
  void count(bool was_accepted) { ++(was_accepted ? accepted : refused); }
};

TEST(Hostile, EveryTruncationIsRefused) {
  for (const std::string& text : originals()) {
    // The last byte is the line feed, without which the text is whole.
    for (size_t size = 0; size + 2 <= text.size(); ++size) {
      EXPECT_FALSE(survives(text.substr(0, size))) << size;
    }
  }
}

TEST(Hostile, FlippedBytes) {
  Outcomes outcomes;
  const Philox random{1};
  const auto texts = originals();
  for (uint64_t i = 0; i < 3000; ++i) {
    std::string text = texts[i % texts.size()];
    const uint64_t flips = 1 + random.word(i, 0) % 3;
    for (uint64_t f = 1; f <= flips; ++f) {
      const uint64_t word = random.word(i, f);
      text[word % text.size()] ^= static_cast<char>(1 << (word >> 61));
    }
    outcomes.count(survives(text));
  }
  EXPECT_GT(outcomes.refused, 1500u);
  EXPECT_GT(outcomes.accepted, 50u) << "some flips only change a digit or a letter of a comment";
}

// Every number of the text in turn becomes something that a number should not be.
TEST(Hostile, Numbers) {
  Outcomes outcomes;
  for (const std::string& text : originals()) {
    for (size_t at = 0; at < text.size(); ++at) {
      const bool starts = std::isdigit(text[at]) && (text[at - 1] == ' ' || text[at - 1] == '[');
      if (!starts) continue;
      size_t end = at;
      while (std::isalnum(text[end]) || text[end] == '.' || text[end] == '-') ++end;
      for (const char* number : {"-1",
                                 "0",
                                 "1",
                                 "2147483648",
                                 "4294967295",
                                 "4294967296",
                                 "9223372036854775807",
                                 "9223372036854775808",
                                 "18446744073709551615",
                                 "18446744073709551616",
                                 "1e308",
                                 "1e309",
                                 "-0.0",
                                 "0.1",
                                 "1e-400",
                                 "NaN",
                                 "Infinity",
                                 "0x10",
                                 "01",
                                 "+1",
                                 "\"1\"",
                                 "null",
                                 "true",
                                 "[]",
                                 "{}",
                                 ""}) {
        outcomes.count(survives(text.substr(0, at) + number + text.substr(end)));
      }
    }
  }
  EXPECT_GT(outcomes.refused, 3000u);
  EXPECT_GT(outcomes.accepted, 300u);
}

TEST(Hostile, PiecesRepeatedMovedAndRemoved) {
  Outcomes outcomes;
  const Philox random{2};
  const auto texts = originals();
  for (uint64_t i = 0; i < 3000; ++i) {
    std::string text = texts[i % texts.size()];
    // Between two structural characters, so that the pieces make sense more often.
    const auto edge = [&](uint64_t word) {
      const size_t found = text.find_first_of(",{[:", word % text.size());
      return found == text.npos ? text.size() : found;
    };
    size_t a = edge(random.word(i, 0)), b = edge(random.word(i, 1));
    if (a > b) std::swap(a, b);
    const std::string piece = text.substr(a, b - a);
    switch (i / texts.size() % 3) {
      case 0:
        text.insert(a, piece);
        break;
      case 1:
        text.erase(a, b - a);
        break;
      case 2:
        text.insert(edge(random.word(i, 2)), piece);
        break;
    }
    outcomes.count(survives(text));
  }
  EXPECT_GT(outcomes.refused, 1500u);
  EXPECT_GT(outcomes.accepted, 20u);
}

TEST(Hostile, DeepNestingAndBrokenUnicode) {
  for (const std::string& text : originals()) {
    const size_t ops = text.find("\"ops\": [") + 8;
    for (const size_t depth : {10, 20, 1000, 100000}) {
      for (const std::string& bracket : {std::string("["), std::string("{\"op\":")}) {
        std::string nested = text;
        std::string opening;
        for (size_t i = 0; i < depth; ++i) opening += bracket;
        nested.insert(ops, opening);
        EXPECT_FALSE(survives(nested));
      }
    }
    const size_t comment = text.find("\"comment\": \"") + 12;
    for (const char* bytes :
         {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\x01", "\\ud800",
          "\\udc00\\ud800", "\\u0000", "\\u001b[2J", "\\q", "\\u12x"}) {
      std::string broken = text;
      broken.insert(comment, bytes);
      EXPECT_FALSE(survives(broken)) << bytes;
    }
    std::string long_comment = text;
    long_comment.insert(comment, std::string(20000, 'x'));
    EXPECT_FALSE(survives(long_comment));
  }
}

// Lawful in every field, and meant to overflow a product or to take for ever.
TEST(Hostile, ProductsBeyondTheLimits) {
  const auto refusal = [](const Case& c) {
    EXPECT_TRUE(check_case(c).ok()) << check_case(c).error().message;
    EXPECT_TRUE(survives(case_to_json(c)));
    const Result<Timeline> timeline = Timeline::create(c);
    return timeline.ok() ? "" : timeline.error().message;
  };
  Case c;
  c.pool = {.page_slots = 256, .page_count = 1 << 15};
  c.shape.head_dim_k = c.shape.head_dim_v = 1;
  c.ops = {op::Admit{}};
  const op::Step large{.rows = {{.append = 1 << 17, .queries = 1 << 12}}};
  Case work = c;
  work.shape.query_heads = 1024;
  work.shape.head_dim_k = 17;
  work.ops.push_back(large);
  EXPECT_EQ(refusal(work), "ops[1].rows[0]: the case exceeds 8796093022208 multiply-adds in all");
  Case slots = c;
  for (int i = 0; i < 33; ++i) slots.ops.push_back(op::Step{.rows = {{.append = 1 << 17}}});
  EXPECT_EQ(refusal(slots).substr(0, 39), "ops[33]: 33 rows, 4325376 slots and 0 q");
  Case queries = c;  // over no slots, so that they cost no work
  for (int i = 0; i < 33; ++i) queries.ops.push_back(op::Step{.rows = {{.queries = 1 << 17}}});
  EXPECT_EQ(refusal(queries).substr(0, 43), "ops[33]: 33 rows, 0 slots and 4325376 query");
  Case step = c;
  step.shape.query_heads = 1024;
  step.shape.head_dim_k = 2;
  step.ops.push_back(op::Step{.rows = {{.queries = 1 << 17}, {.request = RequestId(1)}}});
  step.ops.insert(step.ops.begin(), op::Admit{.request = RequestId(1)});
  EXPECT_EQ(refusal(step),
            "ops[2]: the step's tensors need 1610612736 bytes, expected at most 1073741824");
  Case chain = c;
  chain.ops.clear();
  for (uint32_t i = 0; i < 300; ++i) {
    op::Admit admit{.request = RequestId(i), .prompt_tokens = 4};
    if (i > 0) admit.prefix_of = RequestId(i - 1);
    chain.ops.push_back(admit);
  }
  EXPECT_EQ(refusal(chain),
            "ops[257].prefix_of: chain of 257 shared prefixes, expected at most 256");
  Case pool = c;
  pool.shape = {
      .layers = 256, .query_heads = 1024, .kv_heads = 1024, .head_dim_k = 1024, .head_dim_v = 1024};
  pool.pool.page_count = 1 << 20;
  EXPECT_EQ(check_case(pool).error().message,
            "pool: expected at most 2147483648 bytes of K and V in all layers, got "
            "288230376151711744 bytes");
}

}  // namespace
}  // namespace kv
