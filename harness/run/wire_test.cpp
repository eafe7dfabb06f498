#include "harness/run/wire.h"

#include <gtest/gtest.h>

namespace kv {
namespace {

OpObservation full_observation() {
  OpObservation o;
  o.op_index = 3;
  o.status = OpStatus::kRefused;
  o.message = "m";
  o.variant = "v";
  o.profile = {.tile_slots = 64,
               .order = 1,
               .accumulate = 2,
               .row_sum_of_rounded = 3,
               .maximum_is_exact = 5,
               .splits = 4,
               .probability_code = 6,
               .probability_bits = 16};
  o.layers.push_back({.layer = 1, .output = Bytes(10, std::byte{7}), .lse = {1.0f, -2.0f}});
  o.pages.push_back({.layer = 1, .value = true, .page = PageId(9), .bytes = Bytes(4)});
  o.trespasses.push_back(
      {.tensor = "query", .offset_bytes = 5, .bytes_changed = 6, .want = 7, .got = 8});
  o.repeat_differences.push_back({.layer = 1, .repeat = 2, .lse = true, .element = 4});
  DeviceFinding finding;
  finding.kernel = "k";
  finding.block[2] = 11;
  finding.repeats = 12;
  o.findings.push_back(finding);
  return o;
}

TEST(Wire, CarriesEveryFieldOfAnObservation) {
  const Bytes bytes = encode_operation(42, full_observation());
  const auto numbered = decode_operation(bytes);
  ASSERT_TRUE(numbered.has_value());
  EXPECT_EQ(numbered->number, 42u);
  const auto& o = std::get<OpObservation>(numbered->what);
  EXPECT_EQ(o.layers[0].lse[1], -2.0f);
  EXPECT_EQ(o.pages[0].page, PageId(9));
  EXPECT_EQ(o.findings[0].block[2], 11u);
  EXPECT_EQ(o.profile, full_observation().profile);
  EXPECT_EQ(encode_operation(42, o), bytes);
}

TEST(Wire, CarriesHelloRequestAndEnd) {
  const Hello bad{.error = bad_input("no plugin"), .plugin = {}, .runtime_path = {}};
  EXPECT_EQ(decode_hello(encode_hello(bad))->error->message, "no plugin");
  const Hello good{.error = {},
                   .plugin = {.name = "n", .version = "1", .promises = 31, .variants = {"a", "b"}},
                   .kernel_level = true,
                   .offered = OfferSet(5),
                   .dispatch = {{DType::kBf16, DType::kE4m3, "mixed", "a", {"a", "b"}}},
                   .runtime_path = "p"};
  EXPECT_EQ(encode_hello(*decode_hello(encode_hello(good))), encode_hello(good));
  EXPECT_EQ(decode_hello(encode_hello(good))->plugin.variants[1], "b");
  EXPECT_EQ(decode_hello(encode_hello(good))->offered, OfferSet(5));
  EXPECT_EQ(decode_hello(encode_hello(good))->dispatch, good.dispatch);
  const auto request = decode_request(encode_request({7, "path", Bytes(3, std::byte{9})}));
  EXPECT_EQ(request->case_path, "path");
  EXPECT_EQ(request->case_bytes, Bytes(3, std::byte{9}));
  const RunEnd end{
      .outcome = RunOutcome::kHung, .message = "m", .op_index = 3, .findings = {}, .output = "out"};
  EXPECT_EQ(std::get<RunEnd>(decode_end(encode_end(1, end))->what).output, "out");
}

// A worker whose memory was damaged may send anything at all.
TEST(Wire, RefusesEveryTruncation) {
  const Bytes whole = encode_operation(42, full_observation());
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(decode_operation(ByteSpan(whole).first(size)).has_value()) << size;
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_operation(longer).has_value());
}

TEST(Wire, SurvivesEveryFlippedByte) {
  const Bytes whole = encode_operation(42, full_observation());
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const auto value : {std::byte{0xff}, std::byte{0x80}, std::byte{0}}) {
      Bytes damaged = whole;
      damaged[i] = value;
      const auto numbered = decode_operation(damaged);  // nothing, or something bounded
      if (!numbered) continue;
      EXPECT_LE(std::get<OpObservation>(numbered->what).layers.size(), whole.size());
    }
  }
}

TEST(Wire, MakesForeignTextPrintable) {
  OpObservation o;
  o.message = "a\x1b[2J\xff" + std::string(5000, 'x');
  const auto numbered = decode_operation(encode_operation(1, o));
  const std::string message = std::get<OpObservation>(numbered->what).message;
  EXPECT_EQ(message.size(), 2000u);
  EXPECT_TRUE(message.starts_with("a?[2J?xxx"));
  EXPECT_TRUE(message.ends_with("..."));
}

}  // namespace
}  // namespace kv
