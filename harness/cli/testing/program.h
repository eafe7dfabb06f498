// Purpose: runs build/bin/kverify as a shell would, for tests.
// Contract: returns what it wrote and its exit status; 128 + n when signal n ended it. The
// environment entries are added to the test's own.
// Example: const Ran ran = run_kverify({"--version"}); EXPECT_EQ(ran.status, 0);
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kv::cli {

struct Ran {
  int status = -1;
  std::string out, err;
};

struct RunSetup {
  std::vector<std::pair<std::string, std::string>> environment = {};
  std::string folder = {};             // working folder; "" for the test's own
  double interrupt_after_seconds = 0;  // then SIGINT is sent; 0: never
};

Ran run_kverify(const std::vector<std::string>& arguments, const RunSetup& setup = {});

}  // namespace kv::cli
