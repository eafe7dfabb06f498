// Deterministic damage to fat binaries and PTX: an error or a module, never a crash, a hang or
// memory beyond the limits. Meant to be run with KV_SANITIZE=ON as well.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "harness/core/philox.h"
#include "harness/simt/ptx/cfg.h"
#include "harness/simt/ptx/fatbin.h"
#include "harness/simt/ptx/parse.h"
#include "harness/simt/ptx/testdata/read_file.h"

namespace kv::simt::ptx {
namespace {

constexpr std::string_view kHead = ".version 9.0\n.target sm_80\n.address_size 64\n";

bool survives(std::string text) {
  auto module = parse_module(std::move(text));
  if (!module.ok()) {
    EXPECT_FALSE(module.error().message.empty());
    EXPECT_LT(module.error().message.size(), 1000u);
    return false;
  }
  for (const Function& function : (*module)->functions) build_cfg(function);
  return true;
}

/// Deterministic choices: the n-th is a function of the seed and n.
class Choices {
 public:
  explicit Choices(uint64_t seed) : philox_{.key = seed} {}
  size_t below(size_t bound) { return size_t(philox_.word(0, next_++) % bound); }

 private:
  Philox philox_;
  uint64_t next_ = 0;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

TEST(HostilePtx, Truncation) {
  const std::string text = read_testdata("kernels.ptx");
  ASSERT_TRUE(survives(text));
  size_t refused = 0, tried = 0;
  for (size_t size = 0; size < text.size(); size += 23, ++tried) {
    refused += !survives(text.substr(0, size));
  }
  EXPECT_GT(tried, 400u);
  EXPECT_GT(refused, tried / 2);  // between functions, what is left is a module
}

TEST(HostilePtx, ByteChanges) {
  const std::string text = read_testdata("kernels.ptx");
  size_t refused = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Choices choices(seed);
    std::string damaged = text;
    const size_t changes = 1 + choices.below(4);
    for (size_t i = 0; i < changes; ++i) {
      constexpr std::string_view kBytes = "{}[]()<>,;:+-|!@\"/*.%$_0fx9\n\0\xff";
      const char byte =
          choices.below(2) ? kBytes[choices.below(kBytes.size())] : char(choices.below(256));
      damaged[choices.below(damaged.size())] = byte;
    }
    refused += !survives(damaged);
  }
  EXPECT_GT(refused, 300u);
}

TEST(HostilePtx, LinesDeletedDuplicatedSwapped) {
  const std::vector<std::string> lines = lines_of(read_testdata("kernels.ptx"));
  size_t refused = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Choices choices(seed + 10000);
    std::vector<std::string> damaged = lines;
    const size_t at = choices.below(damaged.size()), other = choices.below(damaged.size());
    switch (choices.below(3)) {
      case 0:
        damaged.erase(damaged.begin() + long(at));
        break;
      case 1:
        damaged.insert(damaged.begin() + long(other), lines[at]);
        break;
      default:
        std::swap(damaged[at], damaged[other]);
    }
    refused += !survives(join(damaged));
  }
  EXPECT_GT(refused, 100u);
}

TEST(HostilePtx, NumbersMadeHuge) {
  const std::string text = read_testdata("kernels.ptx");
  constexpr const char* kNumbers[] = {"4294967295",
                                      "4294967296",
                                      "18446744073709551615",
                                      "99999999999999999999",
                                      "-1",
                                      "0x7fffffffffffffff",
                                      "9223372036854775808",
                                      "0fFFFFFFFF",
                                      "1e308",
                                      "262144"};
  size_t tried = 0;
  for (size_t at = 0; at + 1 < text.size(); ++at) {
    if (text[at] < '0' || text[at] > '9' || (at > 0 && isalnum(text[at - 1]))) continue;
    size_t end = at;
    while (end < text.size() && isalnum(text[end])) ++end;
    const char* number = kNumbers[tried++ % std::size(kNumbers)];
    survives(text.substr(0, at) + number + text.substr(end));
    at = end;
    if (tried == 900) break;
  }
  EXPECT_GT(tried, 400u);
}

/// `open` n times, `middle`, `close` n times.
std::string nested(size_t n, std::string_view open, std::string_view middle,
                   std::string_view close) {
  std::string text;
  for (size_t i = 0; i < n; ++i) text += open;
  text += middle;
  for (size_t i = 0; i < n; ++i) text += close;
  return text;
}

TEST(HostilePtx, DeepNesting) {
  const auto in_body = [](const std::string& body) {
    return std::string(kHead) + ".entry k {\n.reg .b32 r;\n" + body + "\n}\n";
  };
  for (const size_t depth : {60, 1000, 100000}) {
    const bool allowed = depth == 60;
    EXPECT_EQ(survives(in_body(nested(depth, "{", "", "}"))), allowed) << depth;
    EXPECT_EQ(survives(in_body("mov.u32 r, " + nested(depth, "(", "1", ")") + ";")), allowed);
    EXPECT_EQ(survives(in_body("mov.u32 r, " + nested(depth, "-", "1", "") + ";")), allowed);
    EXPECT_EQ(survives(in_body("mov.u32 r, " + nested(depth, "~", "1", "") + ";")), allowed);
    EXPECT_TRUE(survives(in_body("mov.u32 r, 1" + nested(depth, "+1*2", "", "") + ";")));
    EXPECT_FALSE(survives(in_body("mov.u32 r, " + nested(depth, "{", "r", "}") + ";")));
    EXPECT_FALSE(survives(in_body("ld.u32 r, " + nested(depth, "[", "r", "]") + ";")));
    EXPECT_FALSE(
        survives(std::string(kHead) + ".global .u32 x[4] = " + nested(depth, "{", "1", "}") + ";"));
    EXPECT_FALSE(
        survives(std::string(kHead) + ".global .u32 x" + nested(depth, "[1]", "", "") + ";"));
  }
}

TEST(HostilePtx, LongLists) {
  const auto in_body = [](const std::string& body) {
    return std::string(kHead) + ".entry k {\n.reg .b32 r;\n" + body + "\n}\n";
  };
  EXPECT_FALSE(survives(in_body("foo {r" + nested(300, ",r", "", "") + "};")));
  EXPECT_TRUE(survives(in_body("foo {r" + nested(200, ",r", "", "") + "};")));
  EXPECT_FALSE(survives(in_body("foo r" + nested(100, ",r", "", "") + ";")));
  EXPECT_FALSE(survives(in_body("foo" + nested(1000, ".a", "", "") + " r;")));
  EXPECT_FALSE(survives(in_body("foo" + nested(100000, " .a", "", "") + " r;")));
  EXPECT_FALSE(survives(std::string(kHead) + ".entry k(.param .u32 a" +
                        nested(10000, ", .param .u32 _", "", "") + ") {}"));
  EXPECT_TRUE(
      survives(in_body(nested(100000, "@p bra A;", "A:", "").replace(0, 0, ".reg .pred p;"))));
}

TEST(HostilePtx, SmallTextsThatAskForMuch) {
  std::string bombs[] = {
      ".global .b8 x[68719476736][68719476736];",
      ".global .b8 x[65536][65536] = {" + nested(60000, "{},", "{1}", "") + "};",
      ".global .b8 x[1073741824] = {1};\n.global .b8 y[99999999] = {1};",
      ".entry k { .reg .b32 " + std::string(200000, 'r') + "<262144>; }",
      ".file 65536 \"a\"\n.file 65537 \"b\"",
      ".entry k { .reg .b32 r; t: .branchtargets A" + nested(60000, ",A", "", "") +
          "; A: " + nested(1000, "brx.idx r, t;", "", "") + "}",
  };
  for (const std::string& bomb : bombs) survives(std::string(kHead) + bomb);
  std::string registers(kHead);
  for (int i = 0; i < 2000; ++i) {
    registers += ".entry k" + std::to_string(i) + " { .reg .b32 %r<262144>; ret; }\n";
  }
  EXPECT_FALSE(survives(registers));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 3l << 20);  // KiB; sanitizers' own shadow and quarantine included
}

void read_all(std::span<const uint8_t> bytes) {
  auto entries = read_fatbin(bytes);
  if (!entries.ok()) return;
  for (const uint32_t sm : {75, 80, 90}) {
    auto text = select_ptx(*entries, sm);
    if (text.ok()) survives(std::move(text).value());
  }
}

TEST(HostileFatbin, DamagedContainers) {
  for (const char* name : {"none.fatbin", "lz4.fatbin", "zstd.fatbin", "cubin.fatbin"}) {
    const std::string data = read_testdata(name);
    for (uint64_t seed = 0; seed < 400; ++seed) {
      Choices choices(seed + 20000);
      std::vector<uint8_t> damaged(data.begin(), data.end());
      const size_t reach = choices.below(2) ? 0x90 : damaged.size();  // headers, or anything
      const size_t changes = 1 + choices.below(3);
      for (size_t i = 0; i < changes; ++i) {
        damaged[choices.below(reach)] = uint8_t(choices.below(256));
      }
      if (choices.below(4) == 0) damaged.resize(choices.below(damaged.size()));
      read_all(damaged);
    }
  }
}

TEST(HostileFatbin, HeaderFieldsAtTheirExtremes) {
  const std::string data = read_testdata("zstd.fatbin");
  for (size_t offset = 0; offset + 8 <= 0x90; ++offset) {
    for (const uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{0x7fffffff}, UINT64_MAX,
                                 uint64_t{1} << 63, uint64_t{1} << 32}) {
      for (const size_t width : {1, 2, 4, 8}) {
        std::vector<uint8_t> damaged(data.begin(), data.end());
        for (size_t i = 0; i < width; ++i) damaged[offset + i] = uint8_t(value >> (8 * i));
        auto entries = read_fatbin(damaged);
        if (entries.ok()) (void)select_ptx(*entries, 80);
      }
    }
  }
}

}  // namespace
}  // namespace kv::simt::ptx
