// Fails when an archive of NumPy is not read, or one that is damaged, lies about its sizes or would
// fill the memory is.
#include "harness/dump/npz.h"

#include <gtest/gtest.h>

#include "harness/dump/testing.h"

namespace kv {
namespace {

using testing_dump::bytes;
using testing_dump::Members;
using testing_dump::npy;
using testing_dump::npz_of;

std::string error_of(const std::string& text) {
  const auto file = parse_npz(text, "d.npz");
  return file.ok() ? "" : file.error().message;
}

Members two() {
  return {{"q.npy", npy("<f2", "(3,)", bytes<uint16_t>({1, 2, 3}))},
          {"n.npy", npy("<i8", "(64,)", bytes(std::vector<int64_t>(64, 7)))}};
}

TEST(Npz, ReadsStoredAndDeflatedMembers) {
  for (const bool deflated : {false, true}) {
    const auto file = parse_npz(npz_of(two(), deflated), "d.npz");
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_NE(file->find("q"), nullptr);
    EXPECT_EQ(file->bytes_of(*file->find("q"))[4], std::byte{3});
    EXPECT_EQ(integer_at(*file, *file->find("n"), 63), 7);
  }
}

TEST(Npz, RefusesNamesThatAreNoArrays) {
  EXPECT_NE(error_of(npz_of({{"q.txt", "x"}})).find("ends in .npy"), std::string::npos);
  EXPECT_NE(error_of(npz_of({{"q.npy", "x"}})).find("an array of NumPy"), std::string::npos);
  const std::string empty = "PK\x05\x06" + std::string(18, '\0');
  EXPECT_NE(error_of(empty).find("1 to 4096 arrays, got 0"), std::string::npos) << error_of(empty);
  EXPECT_NE(error_of("PK\x05\x06 and no more").find("a zip of arrays"), std::string::npos);
}

// Whatever byte is damaged, the archive is refused or its arrays are those that were written.
TEST(Npz, NoticesDamagedBytes) {
  for (const bool deflated : {false, true}) {
    const std::string text = npz_of(two(), deflated);
    const auto whole = parse_npz(text, "d.npz");
    ASSERT_TRUE(whole.ok());
    for (size_t i = 0; i < text.size(); ++i) {
      for (const char flip : {'\x01', '\x80', '\xff'}) {
        std::string damaged = text;
        damaged[i] = static_cast<char>(damaged[i] ^ flip);
        const auto file = parse_npz(damaged, "d.npz");
        EXPECT_TRUE(!file.ok() || file->data == whole->data) << i;
      }
    }
    for (size_t size = 0; size < text.size(); size += 7) {
      EXPECT_NE(error_of(text.substr(0, size)), "") << size;
    }
  }
}

// 2 GiB of zeros in 2 MiB: refused by what the header says, and by what comes when the header lies.
TEST(Npz, RefusesABomb) {
  const std::string bomb =
      npz_of({{"q.npy", std::string((kTensorFileBytesMax >> 6) + 1, '\0')}}, true);
  ASSERT_LT(bomb.size(), 1u << 20);
  std::string lies = bomb;
  const auto put = [&](size_t at, uint32_t value) { std::memcpy(lies.data() + at, &value, 4); };
  const size_t central = lies.rfind("PK\x01\x02");
  put(central + 24, 1000);
  put(22, 1000);
  EXPECT_NE(error_of(lies), "");
  put(central + 24, 0xfffffff0);
  put(22, 0xfffffff0);
  EXPECT_NE(error_of(lies).find("at most"), std::string::npos) << error_of(lies);
}

TEST(Npz, RefusesANameTwice) {
  std::string text = npz_of({{"q.npy", npy("<f2", "(0,)", "")}, {"r.npy", npy("<f2", "(0,)", "")}});
  for (size_t at = 0; (at = text.find("r.npy", at)) != text.npos;) text[at] = 'q';
  EXPECT_NE(error_of(text), "");
}

}  // namespace
}  // namespace kv
