#include <gtest/gtest.h>

#include <filesystem>

#include "harness/trace/trace.h"

namespace kv {
namespace {

constexpr std::string_view kAzure =
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.6805900,374,44\n"
    "2023-11-16 18:15:50.9951690,396,109";  // the public file ends without a line end, too

TEST(ReadAzure, ReadsLengthsAndArrivals) {
  const auto trace = read_azure(kAzure, "t.csv");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->size(), 2u);
  EXPECT_EQ((*trace)[0].prompt_tokens, 374u);
  EXPECT_EQ((*trace)[1].output_tokens, 109u);
  EXPECT_EQ((*trace)[1].arrival_ns, 4'314'579'000u);
}

TEST(ReadAzure, SaysWhereWhatAndWhy) {
  const std::string bad = std::string(kAzure) + "\n2023-11-16 18:15:51.0,-3,1\n";
  const auto trace = read_azure(bad, "t.csv");
  ASSERT_FALSE(trace.ok());
  EXPECT_EQ(trace.error().message,
            "t.csv: line 4: ContextTokens: expected an integer from 1 to 4194304, got \"-3\"");
  EXPECT_FALSE(read_azure("", "t.csv").ok());
  EXPECT_FALSE(read_azure("TIMESTAMP,ContextTokens,GeneratedTokens\n", "t.csv").ok());
  EXPECT_FALSE(read_azure("\xEF\xBB\xBF" + std::string(kAzure), "t.csv").ok());
  for (const char* row :
       {"2023-13-16 18:15:46,1,1", "2023-11-16 25:15:46,1,1", "2023-11-16,1,1",
        "2023-11-16 18:15:46.12345678901,1,1", "2023-11-16 18:15:46,0,1", "2023-11-16 18:15:46,1",
        "2023-11-16 18:15:46,1,2,3", "", "2023-11-16 18:15:46,99999999999999999999,1"}) {
    const auto one =
        read_azure("TIMESTAMP,ContextTokens,GeneratedTokens\n" + std::string(row) + "\n", "t.csv");
    EXPECT_FALSE(one.ok()) << row;
  }
}

TEST(ReadMooncake, ReadsBlocks) {
  const auto trace = read_mooncake(
      R"({"timestamp": 5, "input_length": 513, "output_length": 2, "hash_ids": [7, 9]})", "m");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ((*trace)[0].blocks, (std::vector<uint64_t>{7, 9}));
}

TEST(ReadMooncake, RefusesWhatDoesNotAddUp) {
  for (const char* line :
       {R"({"timestamp": 5, "input_length": 512, "output_length": 2, "hash_ids": [7, 9]})",
        R"({"timestamp": 5, "input_length": 512, "output_length": 2, "hash_ids": [-7]})",
        R"({"timestamp": 5, "input_length": 512, "output_length": 2})",
        R"({"timestamp": 5, "input_length": 512, "output_length": 2, "hash_ids": [7], "x": 1})",
        R"({"timestamp": 5, "input_length": 5e2, "output_length": 2, "hash_ids": [7]})",
        R"([1, 2, 3, 4])", "{", ""}) {
    EXPECT_FALSE(read_mooncake(std::string(line) + "\n", "m").ok()) << line;
  }
}

// Kills: a message with two numbers of lines, of which one is always 1.
TEST(ReadMooncake, ABrokenLineIsNamedOnce) {
  const auto broken = read_mooncake(
      "{\"timestamp\": 1, \"input_length\": 3, \"output_length\": 1, \"hash_ids\": [0]}\n"
      "{\"timestamp\": 1 \"x\"}\n",
      "m");
  ASSERT_FALSE(broken.ok());
  EXPECT_TRUE(broken.error().message.starts_with("m: line 2: parse error at column 19: "))
      << broken.error().message;
}

TEST(ReadTrace, PublicTraces) {
  const std::filesystem::path folder = std::filesystem::path(KV_SOURCE_DIR) / "../shared/traces";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the public traces are not here";
  const auto azure = read_trace(folder / "azure_2023_conv.csv");
  ASSERT_TRUE(azure.ok()) << azure.error().message;
  EXPECT_EQ(azure->size(), 19366u);
  uint64_t tokens = 0, pages = 0;
  for (size_t i = 0; i < 1000; ++i) {
    const uint64_t held = (*azure)[i].prompt_tokens + (*azure)[i].output_tokens - 1;
    tokens += held + 1;
    pages += (held + 15) / 16;
  }
  EXPECT_EQ(tokens, 1'261'451u);
  EXPECT_EQ(pages, 79'254u);
  const auto mooncake = read_trace(folder / "mooncake_conversation.jsonl");
  ASSERT_TRUE(mooncake.ok()) << mooncake.error().message;
  EXPECT_EQ(mooncake->size(), 12031u);
}

}  // namespace
}  // namespace kv
