#include "harness/simt/exec/semantics_test/bench.h"

#include <gtest/gtest.h>

namespace kv::simt::semantics {

Bench::Bench(const std::string& ptx, uint32_t model_sm, uint32_t rounding) {
  device_.reset();
  kv_simt_config config = device_.config();
  config.checks = KV_SIMT_CHECK_ALL & ~uint32_t{KV_SIMT_CHECK_LEAK};
  config.model_sm = model_sm;
  config.rounding = rounding;
  const auto configured = device_.configure(config);
  EXPECT_TRUE(configured.ok()) << (configured.ok() ? "" : configured.error().message);
  auto module = device_.load_module(ptx);
  if (!module.ok()) {
    ADD_FAILURE() << "not loaded: " << module.error().message;
    return;
  }
  module_ = *module;
  auto kernel = device_.find_kernel(module_, "k");
  if (!kernel.ok()) {
    ADD_FAILURE() << "not decoded: " << kernel.error().message;
    return;
  }
  kernel_ = *kernel;
}

Bench::~Bench() {
  if (module_) device_.unload_module(module_);
}

uint64_t Bench::upload(const void* bytes, uint64_t count) {
  const auto address = device_.allocate(count);
  EXPECT_TRUE(address.ok());
  if (!address.ok()) return 0;
  EXPECT_TRUE(device_.copy(*address, reinterpret_cast<uint64_t>(bytes), count).ok());
  return *address;
}

uint64_t Bench::reserve(uint64_t bytes) { return upload(std::vector<uint8_t>(bytes, 0)); }

void Bench::download(uint64_t address, void* bytes, uint64_t count) {
  EXPECT_TRUE(device_.copy(reinterpret_cast<uint64_t>(bytes), address, count).ok());
}

LaunchStatus Bench::launch_status(const LaunchShape& shape,
                                  const std::vector<uint64_t>& parameters) {
  if (!kernel_) return LaunchStatus::kUnsupported;
  LaunchSpec spec;
  spec.kernel = kernel_;
  spec.grid = shape.grid;
  spec.block = shape.block;
  spec.dynamic_shared_bytes = shape.dynamic_shared_bytes;
  spec.parameters = {reinterpret_cast<const uint8_t*>(parameters.data()),
                     parameters.size() * sizeof(uint64_t)};
  auto status = device_.launch(spec);
  if (!status.ok()) {
    ADD_FAILURE() << "not launched: " << status.error().message;
    return LaunchStatus::kUnsupported;
  }
  return *status;
}

Bench::Ran Bench::launch(const LaunchShape& shape, const std::vector<uint64_t>& parameters) {
  if (!kernel_) return Ran::kFailed;
  const LaunchStatus status = launch_status(shape, parameters);
  const auto& findings = device_.findings();
  if (status == LaunchStatus::kUnsupported) return Ran::kUnsupported;
  if (!findings.empty()) {
    ADD_FAILURE() << "finding at '" << findings[0].instruction << "', PTX line "
                  << findings[0].ptx_line << ": " << findings[0].message;
  } else if (status != LaunchStatus::kCompleted) {
    ADD_FAILURE() << "launch ended with status " << int(status);
  } else {
    return Ran::kToItsEnd;
  }
  return Ran::kFailed;
}

}  // namespace kv::simt::semantics
