// Fails when the reader accepts a file whose header lies, or refuses what frameworks write.
#include "harness/case/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

namespace kv {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text + header + data;
}

std::string error_of(const std::string& text) {
  const auto file = parse_safetensors(text, "x.safetensors");
  return file.ok() ? "" : file.error().message;
}

// As safetensors 0.4 for Python writes it: padded header, tensors by size of their type.
const std::string kHeader =
    R"({"__metadata__":{"scale":"0.125"},"n":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
    R"("q":{"dtype":"F16","shape":[1,2],"data_offsets":[8,12]}}   )";
const std::string kData = std::string("\x07\0\0\0\0\0\0\0", 8) + std::string("\0\x3c\0\xc0", 4);

TEST(Safetensors, ReadsWhatFrameworksWrite) {
  const auto file = parse_safetensors(file_of(kHeader, kData), "x");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->metadata.at("scale"), "0.125");
  ASSERT_NE(file->find("q"), nullptr);
  EXPECT_EQ(file->find("q")->shape_text(), "[1, 2]");
  EXPECT_EQ(float_type(*file->find("q")), DType::kF16);
  EXPECT_EQ(integer_at(*file, *file->find("n"), 0), 7);
  EXPECT_EQ(file->bytes_of(*file->find("q"))[1], std::byte{0x3c});
  EXPECT_EQ(file->find("k"), nullptr);
}

TEST(Safetensors, WritesWhatItReads) {
  const auto file = parse_safetensors(file_of(kHeader, kData), "x");
  ASSERT_TRUE(file.ok());
  const std::string text = safetensors_text(*file);
  const auto again = parse_safetensors(text, "x");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(safetensors_text(*again), text);
  EXPECT_EQ(again->metadata, file->metadata);
  const auto bytes = again->bytes_of(*again->find("q"));
  EXPECT_EQ(std::memcmp(bytes.data(), kData.data() + 8, 4), 0);
}

TEST(Safetensors, RefusesHeadersThatLie) {
  const auto tensor = [](const std::string& body) {
    return file_of("{\"q\":" + body + "}", "0123");
  };
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"", "8 bytes"},
           {std::string(8, '\xff'), "at most 0 bytes"},
           {file_of("[]", ""), "an object"},
           {file_of("{\"q\":1}", ""), "an object"},
           {file_of("{\"a\":{},\"a\":{}}", ""), "duplicate"},
           {file_of("{", ""), "header"},
           {file_of("{}", "0"), "0 bytes of tensors"},
           {tensor(R"({"dtype":"F17","shape":[2],"data_offsets":[0,4]})"), "dtype"},
           {tensor(R"({"dtype":"F16","shape":[3],"data_offsets":[0,4]})"), "of shape [3]"},
           {tensor(R"({"dtype":"F16","shape":[-2],"data_offsets":[0,4]})"), "unsigned"},
           {tensor(R"({"dtype":"F16","shape":[4294967296,4294967296],"data_offsets":[0,4]})"),
            "of shape"},
           {tensor(R"({"dtype":"F16","shape":[1,1,1,1,1,1,1,1,2],"data_offsets":[0,4]})"), "shape"},
           {tensor(R"({"dtype":"F16","shape":[2],"data_offsets":[0,5]})"), "within 4 bytes"},
           {tensor(R"({"dtype":"F16","shape":[2],"data_offsets":[4,0]})"), "ascending"},
           {tensor(R"({"dtype":"F16","shape":[2],"data_offsets":[0]})"), "2 unsigned"},
           {tensor(R"({"dtype":"F16","shape":[1],"data_offsets":[2,4]})"),
            "begin at data offset 0"},
           {file_of(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                    R"("b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                    "0123"),
            "begin at data offset 3"},
       }) {
    EXPECT_NE(error_of(text).find(part), std::string::npos) << part << "\n" << error_of(text);
    EXPECT_EQ(error_of(text).rfind("x.safetensors: ", 0), 0u) << error_of(text);
  }
}

TEST(Safetensors, RefusesEveryBeginningOfAFile) {
  const std::string text = file_of(kHeader, kData);
  for (size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(error_of(text.substr(0, size)), "") << size;
  EXPECT_EQ(error_of(text), "");
}

}  // namespace
}  // namespace kv
