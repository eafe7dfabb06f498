// Purpose: what the tests of the runtime share: a fresh device for each test, and its findings.
// Contract: every test starts from reset() with all checks on; a test that leaves findings or a
// sticky error behind says so by asking for them.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "harness/simt/control/kv_simt_control.h"

namespace kv::simt::programs {

class DeviceTest : public testing::Test {
 protected:
  static const kv_simt_control_v1& control() { return *kv_simt_control(1); }

  void SetUp() override {
    ASSERT_EQ(control().reset(), 0);
    kv_simt_config config = current();
    config.checks = KV_SIMT_CHECK_ALL;
    config.schedule_seed = 0;
    config.model_sm = 80;
    config.instruction_budget = 100000;
    config.fail_allocation = 0;
    configure(config);
  }

  static kv_simt_config current() {
    kv_simt_config config = {};
    config.struct_bytes = sizeof config;
    EXPECT_EQ(control().get_config(&config), 0);
    return config;
  }
  static void configure(const kv_simt_config& config) {
    ASSERT_EQ(control().configure(&config), 0) << control().last_error();
  }
  static std::vector<kv_simt_finding> findings() {
    std::vector<kv_simt_finding> all(control().finding_kept());
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].struct_bytes = sizeof all[i];
      EXPECT_EQ(control().finding(i, &all[i]), 0);
    }
    return all;
  }
  static std::vector<uint32_t> finding_kinds() {
    std::vector<uint32_t> kinds;
    for (const auto& f : findings()) kinds.push_back(f.kind);
    return kinds;
  }
  template <class T>
  static T* upload(const std::vector<T>& host) {
    void* device = nullptr;
    EXPECT_EQ(cudaMalloc(&device, host.size() * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
    return static_cast<T*>(device);
  }
  template <class T>
  static std::vector<T> download(const T* device, size_t count) {
    std::vector<T> host(count);
    EXPECT_EQ(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return host;
  }
};

using Kinds = std::vector<uint32_t>;

}  // namespace kv::simt::programs
