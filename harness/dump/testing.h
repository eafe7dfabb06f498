// Purpose: dumps for tests, as a framework would write them.
// Contract: little-endian bytes; nothing is checked, so that tests can write what lies.
// Example: const std::string zip = npz_of({{"q.npy", npy("<f2", "(1, 2)", data)}});
#pragma once

#include <gtest/gtest.h>
#include <zip.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace kv::testing_dump {

inline std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                       const std::string& order = "False") {
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::string text("\x93NUMPY\x01\x00\x00\x00", 10);
  std::memcpy(text.data() + 8, &length, 2);
  return text + header + data;
}

using Members = std::vector<std::pair<std::string, std::string>>;

/// A zip; `deflated` as savez_compressed writes it.
inline std::string npz_of(const Members& members, bool deflated = false) {
  zip_error_t error;
  zip_source_t* buffer = zip_source_buffer_create(nullptr, 0, 0, &error);
  zip_source_keep(buffer);
  zip_t* zip = zip_open_from_source(buffer, ZIP_TRUNCATE, &error);
  for (const auto& [name, data] : members) {
    zip_source_t* one = zip_source_buffer(zip, data.data(), data.size(), 0);
    const zip_int64_t index = zip_file_add(zip, name.c_str(), one, ZIP_FL_OVERWRITE);
    EXPECT_GE(index, 0);
    zip_set_file_compression(zip, static_cast<zip_uint64_t>(index),
                             deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
  }
  EXPECT_EQ(zip_close(zip), 0);
  zip_stat_t about;
  EXPECT_EQ(zip_source_stat(buffer, &about), 0);
  std::string text(about.size, '\0');
  EXPECT_EQ(zip_source_open(buffer), 0);
  EXPECT_EQ(zip_source_read(buffer, text.data(), text.size()),
            static_cast<zip_int64_t>(text.size()));
  zip_source_close(buffer);
  zip_source_free(buffer);
  return text;
}

template <class T>
std::string bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace kv::testing_dump
