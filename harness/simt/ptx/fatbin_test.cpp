#include "harness/simt/ptx/fatbin.h"

#include <gtest/gtest.h>

#include <cstring>

#include "harness/simt/ptx/parse.h"
#include "harness/simt/ptx/testdata/read_file.h"

namespace kv::simt::ptx {
namespace {

std::span<const uint8_t> bytes_of(const std::string& data) {
  return {reinterpret_cast<const uint8_t*>(data.data()), data.size()};
}

struct Wrapper {
  uint32_t magic = 0x466243b1, version = 1;
  const void* fatbin = nullptr;
  const void* unused = nullptr;
};

TEST(Fatbin, EveryCompressionModeGivesTheSameText) {
  std::string plain;
  for (const char* name : {"none.fatbin", "lz4.fatbin", "zstd.fatbin"}) {
    const std::string data = read_testdata(name);
    auto entries = read_fatbin(bytes_of(data));
    ASSERT_TRUE(entries.ok()) << name << ": " << entries.error().message;
    ASSERT_EQ(entries->size(), 2u) << name;
    EXPECT_EQ((*entries)[0].isa_major, 9u);
    auto text = select_ptx(*entries, 80);
    ASSERT_TRUE(text.ok()) << name << ": " << text.error().message;
    EXPECT_TRUE(parse_module(*text).ok()) << name;
    if (plain.empty()) plain = *text;
    EXPECT_EQ(*text, plain) << name;
  }
  using Compression = FatbinEntry::Compression;
  const auto mode = [](const char* name) {
    const std::string data = read_testdata(name);
    return read_fatbin(bytes_of(data)).value()[0].compression;
  };
  EXPECT_EQ(mode("none.fatbin"), Compression::kNone);
  EXPECT_EQ(mode("lz4.fatbin"), Compression::kLz4);
  EXPECT_EQ(mode("zstd.fatbin"), Compression::kZstd);
}

TEST(Fatbin, TakesTheHighestEntryNotAboveTheModel) {
  const std::string data = read_testdata("zstd.fatbin");
  const auto entries = read_fatbin(bytes_of(data)).value();
  EXPECT_NE(select_ptx(entries, 80).value().find(".target sm_80"), std::string::npos);
  EXPECT_NE(select_ptx(entries, 89).value().find(".target sm_80"), std::string::npos);
  EXPECT_NE(select_ptx(entries, 90).value().find(".target sm_90"), std::string::npos);
  const auto none = select_ptx(entries, 75);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message,
            "the fat binary holds no PTX that sm_75 can run, only: PTX sm_80, PTX sm_90. "
            "Recompile with -gencode arch=compute_80,code=compute_80");
}

TEST(Fatbin, CubinOnlyIsRefusedWithTheRemedy) {
  const std::string data = read_testdata("cubin.fatbin");
  const auto entries = read_fatbin(bytes_of(data)).value();
  const auto text = select_ptx(entries, 80);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(text.error().message.find("only: cubin sm_80"), std::string::npos);
  EXPECT_NE(text.error().message.find("-gencode arch=compute_80,code=compute_80"),
            std::string::npos);
}

TEST(Fatbin, Wrapper) {
  const std::string data = read_testdata("lz4.fatbin");
  Wrapper wrapper{.fatbin = data.data()};
  auto entries = read_fatbin_wrapper(&wrapper);
  ASSERT_TRUE(entries.ok());
  EXPECT_EQ(entries->size(), 2u);
  wrapper.version = 2;
  EXPECT_NE(read_fatbin_wrapper(&wrapper).error().message.find("-rdc=true"), std::string::npos);
  wrapper.version = 7;
  EXPECT_FALSE(read_fatbin_wrapper(&wrapper).ok());
  wrapper = {.magic = 1, .fatbin = data.data()};
  EXPECT_FALSE(read_fatbin_wrapper(&wrapper).ok());
  wrapper = {};
  EXPECT_FALSE(read_fatbin_wrapper(&wrapper).ok());
  EXPECT_FALSE(read_fatbin_wrapper(nullptr).ok());
}

/// The message after `value` is written into none.fatbin at `offset`.
template <class T>
std::string error_with(size_t offset, T value, const char* name = "none.fatbin") {
  std::string data = read_testdata(name);
  std::memcpy(data.data() + offset, &value, sizeof value);
  auto entries = read_fatbin(bytes_of(data));
  if (!entries.ok()) return entries.error().message;
  auto text = select_ptx(*entries, 80);
  return text.ok() ? "no error" : text.error().message;
}

TEST(Fatbin, LiesAreNamed) {
  const auto has = [](const std::string& message, std::string_view part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  constexpr size_t kEntry = 0x10;
  has(error_with(0, uint32_t{5}), "expected the magic 0xba55ed50, got 0x5");
  has(error_with(4, uint16_t{9}), "expected version 1, got 9");
  has(error_with(6, uint16_t{4}), "header and entries within");
  has(error_with(8, UINT64_MAX), "header and entries within");
  has(error_with(kEntry + 4, uint32_t{8}), "byte 0x14: expected an entry header of 64 to");
  has(error_with(kEntry + 4, UINT32_MAX), "byte 0x14: expected an entry header of 64 to");
  has(error_with(kEntry + 8, UINT64_MAX), "byte 0x18: expected a payload of at most");
  has(error_with(kEntry + 0x38, uint64_t{1} << 40, "zstd.fatbin"), "expected PTX of at most");
  has(error_with(kEntry + 0x38, uint64_t{7000}, "zstd.fatbin"), "zstd frame of the sm_80 entry");
  has(error_with(kEntry + 0x38, uint64_t{7000}, "lz4.fatbin"), "LZ4 block of the sm_80 entry");
  has(error_with(kEntry + 0x10, uint32_t{0}, "lz4.fatbin"), "compressed bytes between 1 and");
  has(error_with(kEntry + 0x10, UINT32_MAX, "lz4.fatbin"), "compressed bytes between 1 and");
}

TEST(Fatbin, EveryTruncationIsAnError) {
  const std::string data = read_testdata("zstd.fatbin");
  for (size_t size = 0; size < data.size(); ++size) {
    EXPECT_FALSE(read_fatbin(bytes_of(data).first(size)).ok()) << size;
  }
  EXPECT_TRUE(read_fatbin(bytes_of(data)).ok());
}

TEST(Fatbin, TheEmptyContainerOfADeviceLinkHoldsNothing) {
  const std::string data("\x50\xed\x55\xba\x01\0\x10\0\0\0\0\0\0\0\0\0", 16);
  auto entries = read_fatbin(bytes_of(data));
  ASSERT_TRUE(entries.ok());
  EXPECT_TRUE(entries->empty());
  EXPECT_NE(select_ptx(*entries, 80).error().message.find("only: nothing"), std::string::npos);
}

}  // namespace
}  // namespace kv::simt::ptx
