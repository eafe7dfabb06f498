// Fails when an array of NumPy is read otherwise than it was written, or one whose header lies is
// read at all.
#include "harness/dump/npy.h"

#include <gtest/gtest.h>

#include "harness/dump/testing.h"

namespace kv {
namespace {

using testing_dump::bytes;
using testing_dump::npy;

std::string error_of(const std::string& text) {
  TensorFile file;
  const auto added = add_npy(file, "x", text, "d.npz: x");
  return added.ok() ? "" : added.error().message;
}

TEST(Npy, ReadsTheTypesOfADump) {
  TensorFile file;
  const auto add = [&](const char* name, const std::string& text) {
    const auto added = add_npy(file, name, text, name);
    EXPECT_TRUE(added.ok()) << added.error().message;
  };
  add("half", npy("<f2", "(2, 1)", bytes<uint16_t>({0x3c00, 0xc000})));
  add("brain", npy("|V2", "(1,)", bytes<uint16_t>({0x3f80})));
  add("bits", npy("<u2", "(1,)", bytes<uint16_t>({0x3f80})));
  add("codes", npy("|V1", "(2,)", "\x38\xb8"));
  EXPECT_EQ(file.find("codes")->type, "U8");
  add("lengths", npy("<i4", "(3,)", bytes<int32_t>({1, -2, 3})));
  add("scale", npy("<f8", "()", bytes<double>({0.5})));
  EXPECT_EQ(file.find("half")->shape_text(), "[2, 1]");
  EXPECT_EQ(float_type(*file.find("half")), DType::kF16);
  EXPECT_EQ(float_type(*file.find("brain")), DType::kBf16);
  EXPECT_EQ(float_type(*file.find("bits")), DType::kBf16);
  EXPECT_EQ(integer_at(file, *file.find("lengths"), 1), -2);
  EXPECT_EQ(file.find("scale")->elements(), 1u);
}

TEST(Npy, ReadsVersionsTwoAndThree) {
  for (const char version : {'\x02', '\x03'}) {
    std::string text = npy("<f2", "(1,)", std::string("\0\x3c", 2));
    text.insert(10, 2, '\0');  // a length of four bytes
    text[6] = version;
    EXPECT_EQ(error_of(text), "");
  }
}

TEST(Npy, RefusesWhatLies) {
  const std::string two("\0\x3c\0\x3c", 4);
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "an array of NumPy"},
           {"PK\x03\x04 not an array", "an array of NumPy"},
           {std::string("\x93NUMPY\x09\0\x02\0\0\0{}", 14), "version 1, 2 or 3"},
           {std::string("\x93NUMPY\x01\0\xff\xff\0\0", 12), "a header that fits"},
           {std::string("\x93NUMPY\x02\0\xff\xff\xff\x7f", 12), "a header that fits"},
           {npy("<f2", "(3,)", two), "of shape [3], got 4 bytes"},
           {npy("<f2", "(2, 1)", two + two), "of shape [2, 1], got 8 bytes"},
           {npy("<f2", "(2, 2)", two + two, "True"), "C order"},
           {npy(">f2", "(2,)", two), "little-endian"},
           {npy("|O", "(2,)", two), "little-endian"},
           {npy("<f2", "(18446744073709551615, 18446744073709551615)", two), "of shape"},
           {npy("<f2", "(99999999999999999999,)", two), "a header of descr"},
           {npy("<f2", "(-2,)", two), "a header of descr"},
           {npy("<f2", "2", two), "a header of descr"},
           {npy("<f2", "(2,), 'shape': (2,)", two), "a header of descr"},
           {npy("<f2", "(2,), 'more': (2,)", two), "a header of descr"},
           {npy("<f2'", "(2,)", two), "a header of descr"},
           {npy("<f2", "(1,1,1,1,1,1,1,1,2)", two), "a header of descr"},
       }) {
    EXPECT_NE(error_of(text).find(part), std::string::npos) << part << "\n" << error_of(text);
  }
}

TEST(Npy, RefusesEveryBeginningOfAnArray) {
  const std::string text = npy("<f2", "(2,)", std::string("\0\x3c\0\x3c", 4));
  for (size_t size = 0; size < text.size(); ++size) EXPECT_NE(error_of(text.substr(0, size)), "");
  EXPECT_EQ(error_of(text), "");
}

}  // namespace
}  // namespace kv
