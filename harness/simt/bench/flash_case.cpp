#include "harness/simt/bench/flash_case.h"

#include <cstring>

#include "harness/core/check.h"
#include "harness/core/philox.h"

namespace kv::simt::bench {
namespace {

/// Halves between 0.125 and 2, as the prototype's benchmark has them.
std::vector<uint16_t> halves(size_t count, uint64_t seed) {
  std::vector<uint16_t> values(count);
  const Philox philox{seed};
  for (size_t k = 0; k < count; ++k) values[k] = uint16_t(0x3000 + (philox.word(0, k) & 0xfff));
  return values;
}

}  // namespace

FlashCase::FlashCase(const std::string& ptx) {
  device_.reset();
  const auto module = device_.load_module(ptx);
  KV_CHECK(module.ok(), "flash.ptx is not loaded: " + module.error().message);
  for (int k = 0; k < 2; ++k) {
    const auto kernel = device_.find_kernel(*module, k ? "flash_4" : "flash_1");
    KV_CHECK(kernel.ok(), "flash.ptx has no such kernel");
    kernels_[k] = *kernel;
  }
  query_ = halves(size_t(kQueries * kHeads * kDim), 1);
  key_ = halves(size_t(kKeys * kHeads * kDim), 2);
  value_ = halves(size_t(kKeys * kHeads * kDim), 3);
}

bool FlashCase::prepare(uint32_t checks) {
  device_.reset();
  kv_simt_config config = device_.config();
  config.checks = checks;
  if (!device_.configure(config).ok()) return false;
  bool good = true;
  const auto allocate = [&](uint64_t bytes) {
    const auto address = device_.allocate(bytes);
    good &= address.ok();
    return address.ok() ? *address : 0;
  };
  const auto upload = [&](const std::vector<uint16_t>& values) {
    const uint64_t address = allocate(values.size() * 2);
    good &=
        device_.copy(address, reinterpret_cast<uint64_t>(values.data()), values.size() * 2).ok();
    return reinterpret_cast<const __half*>(address);
  };
  FlashParameters& p = parameters_;
  p.q = upload(query_);
  p.k = upload(key_);
  p.v = upload(value_);
  p.o = reinterpret_cast<__half*>(allocate(query_.size() * 2));
  p.lse = reinterpret_cast<float*>(allocate(kQueries * kHeads * 4));
  p.queries = kQueries;
  p.keys = kKeys;
  p.query_row = p.key_row = kHeads * kDim;
  p.query_head = p.key_head = kDim;
  p.scale = 0.125f;
  return good;
}

bool FlashCase::launch(uint32_t warps) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&parameters_);
  const auto status = device_.launch({.kernel = kernels_[warps == 4],
                                      .grid = {1, kHeads, 1},
                                      .block = {warps * 32, 1, 1},
                                      .dynamic_shared_bytes = flash_shared_bytes(warps),
                                      .parameters = {bytes, sizeof parameters_}});
  return status.ok() && *status == LaunchStatus::kCompleted && device_.finding_count() == 0;
}

double FlashCase::output_sum() {
  std::vector<uint16_t> out(query_.size());
  const auto copied = device_.copy(reinterpret_cast<uint64_t>(out.data()),
                                   reinterpret_cast<uint64_t>(parameters_.o), out.size() * 2);
  KV_CHECK(copied.ok(), "the result cannot be read");
  double sum = 0;
  for (uint16_t bits : out) {
    sum += double((bits & 0x3ff) + 0x400) * double(1u << (bits >> 10)) * 0x1p-25;
  }
  return sum;
}

}  // namespace kv::simt::bench
