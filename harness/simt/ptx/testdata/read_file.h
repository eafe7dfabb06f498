// Purpose: whole files of this room's test data.
// Contract: for tests only; KV_TESTDATA is set by CMake. A missing file is a test failure.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace kv::simt::ptx {

inline std::string read_testdata(const std::string& name) {
  std::ifstream file(std::string(KV_TESTDATA) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace kv::simt::ptx
