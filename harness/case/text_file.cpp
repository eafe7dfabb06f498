#include "harness/case/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace kv {

Result<std::string> read_text_file(const std::string& path, uint64_t bytes_max) {
  const auto refuse = [&](std::string_view why) {
    return bad_input(fmt::format("{}: {}", path, why));
  };
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) return refuse("no such file");
  if (!std::filesystem::is_regular_file(status)) return refuse("expected a regular file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse(fmt::format("cannot open: {}", std::strerror(errno)));
  std::string text;
  char block[65536];
  while (file.read(block, sizeof block), file.gcount() > 0) {
    text.append(block, static_cast<size_t>(file.gcount()));
    if (text.size() > bytes_max) {
      return refuse(fmt::format("expected at most {} bytes, got more", bytes_max));
    }
  }
  if (file.bad()) return refuse("cannot read");
  return text;
}

}  // namespace kv
