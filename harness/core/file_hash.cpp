#include "harness/core/file_hash.h"

#include <fstream>
#include <vector>

#include "harness/core/hash.h"

namespace kv {

Result<std::string> hash_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Hasher hasher;
  std::vector<char> piece(size_t{1} << 16);
  do {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    hasher.add_bytes(std::as_bytes(std::span(piece.data(), static_cast<size_t>(file.gcount()))));
  } while (file);
  if (!file.eof()) return environment_error(path + ": cannot be read");
  return hex64(hasher.digest());
}

}  // namespace kv
