// Damaged traces: an error or a trace within limits, never a crash (run under ASan and UBSan too).
#include <gtest/gtest.h>

#include <string>

#include "harness/core/philox.h"
#include "harness/trace/trace.h"
#include "harness/trace/trace_limits.h"

namespace kv {
namespace {

constexpr int kMutations = 600;

std::string damage(std::string text, uint64_t seed) {
  const Philox random{seed};
  const uint64_t edits = 1 + random.word(0, 0) % 4;
  for (uint64_t i = 1; i <= edits && !text.empty(); ++i) {
    const uint64_t at = random.word(i, 0) % text.size();
    const uint64_t length = std::min<uint64_t>(random.word(i, 2) % 40, text.size() - at);
    switch (random.word(i, 1) % 6) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text[at] = static_cast<char>(random.word(i, 3));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      case 4:
        text.insert(at, std::string(length, '9'));
        break;
      default:
        text.insert(at, std::string(length * 10, '['));
        break;
    }
  }
  return text;
}

template <class Read>
void survives(const std::string& text, Read read) {
  int refused = 0;
  for (int i = 0; i < kMutations; ++i) {
    const auto trace = read(damage(text, static_cast<uint64_t>(i)), "damaged");
    if (!trace.ok()) {
      ++refused;
      EXPECT_EQ(trace.error().kind, ErrorKind::kBadInput);
      EXPECT_LE(trace.error().message.size(), 1000u);
      continue;
    }
    for (const TraceRequest& r : *trace) {
      EXPECT_GE(r.prompt_tokens, 1u);
      EXPECT_LE(r.prompt_tokens, limits::kTraceTokensMax);
      EXPECT_LE(r.output_tokens, limits::kTraceTokensMax);
    }
  }
  EXPECT_GT(refused, kMutations / 2);
}

TEST(HostileTrace, Azure) {
  std::string text = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  for (int i = 0; i < 8; ++i) {
    text += "2023-11-16 18:15:5" + std::to_string(i) + ".12,3" + std::to_string(i) + ",44\n";
  }
  survives(text, read_azure);
}

TEST(HostileTrace, Mooncake) {
  std::string text;
  for (int i = 0; i < 6; ++i) {
    text += R"({"timestamp": 3, "input_length": 1024, "output_length": 7, "hash_ids": [1, )" +
            std::to_string(i) + "]}\n";
  }
  survives(text, read_mooncake);
}

}  // namespace
}  // namespace kv
