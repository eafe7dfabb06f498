#include "harness/run/device_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "harness/core/check.h"

namespace kv {
namespace {

constexpr uint64_t kRedZoneBytes = 1024;  // a multiple of the alignment that plugins may expect
constexpr std::byte kRedZone{0xa5};

Result<void> check_code(const CudaRuntime& runtime, const char* call, int code) {
  if (code == 0) return {};
  return environment_error(std::string(call) + " failed: " + runtime.describe(code));
}

}  // namespace

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(runtime_, other.runtime_);
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(red_zone_bytes_, other.red_zone_bytes_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (base_ != nullptr) runtime_->free_device(base_);
}

Result<DeviceBuffer> DeviceBuffer::allocate(const CudaRuntime& runtime, uint64_t bytes) {
  DeviceBuffer buffer;
  if (bytes == 0) return buffer;
  buffer.runtime_ = &runtime;
  buffer.bytes_ = bytes;
  buffer.red_zone_bytes_ = runtime.device == DeviceKind::kCuda ? kRedZoneBytes : 0;
  const uint64_t whole = bytes + 2 * buffer.red_zone_bytes_;
  void* pointer = nullptr;
  const int code = runtime.malloc_device(&pointer, whole);
  if (code != 0)
    return environment_error("cudaMalloc of " + std::to_string(whole) +
                             " bytes failed: " + runtime.describe(code));
  buffer.base_ = static_cast<std::byte*>(pointer);
  if (buffer.red_zone_bytes_ > 0)
    KV_RETURN_IF_ERROR(check_code(runtime, "cudaMemset",
                                  runtime.fill(pointer, std::to_integer<int>(kRedZone), whole)));
  return buffer;
}

void* DeviceBuffer::data() const { return base_ == nullptr ? nullptr : base_ + red_zone_bytes_; }

Result<void> DeviceBuffer::upload(std::span<const std::byte> host, uint64_t offset) const {
  KV_CHECK(offset <= bytes_ && host.size() <= bytes_ - offset, "upload beyond the buffer");
  if (host.empty()) return {};
  return check_code(*runtime_, "cudaMemcpy to the device",
                    runtime_->copy(static_cast<std::byte*>(data()) + offset, host.data(),
                                   host.size(), CopyKind::kHostToDevice));
}

Result<void> DeviceBuffer::download(std::span<std::byte> host, uint64_t offset) const {
  KV_CHECK(offset <= bytes_ && host.size() <= bytes_ - offset, "download beyond the buffer");
  if (host.empty()) return {};
  return check_code(*runtime_, "cudaMemcpy from the device",
                    runtime_->copy(host.data(), static_cast<std::byte*>(data()) + offset,
                                   host.size(), CopyKind::kDeviceToHost));
}

Result<void> DeviceBuffer::fill(std::byte value) const {
  if (bytes_ == 0) return {};
  return check_code(*runtime_, "cudaMemset",
                    runtime_->fill(data(), std::to_integer<int>(value), bytes_));
}

void DeviceBuffer::set_access(uint64_t offset, uint64_t bytes, uint32_t access) const {
  if (bytes == 0 || runtime_->control == nullptr) return;
  const int code = runtime_->control->set_access(address() + offset, bytes, access);
  KV_CHECK(code == 0, runtime_->control->last_error());
}

void DeviceBuffer::set_undefined(uint64_t offset, uint64_t bytes) const {
  if (bytes == 0 || runtime_->control == nullptr) return;
  const int code = runtime_->control->set_undefined(address() + offset, bytes);
  KV_CHECK(code == 0, runtime_->control->last_error());
}

DeviceBuffer::Run DeviceBuffer::first_undefined(uint64_t offset, uint64_t bytes) const {
  Run run;
  if (bytes == 0 || runtime_->control == nullptr) return run;
  const int code =
      runtime_->control->first_undefined(address() + offset, bytes, &run.offset, &run.bytes);
  KV_CHECK(code == 0, runtime_->control->last_error());
  run.offset += offset;
  return run;
}

void DeviceBuffer::report_undefined(const Run& run, const std::string& what) const {
  if (run.bytes == 0 || runtime_->control == nullptr) return;
  const int code =
      runtime_->control->report_undefined(address() + run.offset, run.bytes, what.c_str());
  KV_CHECK(code == 0, runtime_->control->last_error());
}

Result<std::optional<Trespass>> DeviceBuffer::damaged_red_zone(const std::string& tensor) const {
  if (red_zone_bytes_ == 0) return std::optional<Trespass>{};
  const std::vector<std::byte> want(red_zone_bytes_, kRedZone);
  std::vector<std::byte> got(red_zone_bytes_);
  for (const bool after : {false, true}) {
    const std::byte* zone = base_ + (after ? red_zone_bytes_ + bytes_ : 0);
    KV_RETURN_IF_ERROR(
        check_code(*runtime_, "cudaMemcpy from the device",
                   runtime_->copy(got.data(), zone, got.size(), CopyKind::kDeviceToHost)));
    auto change =
        first_change("memory " + std::string(after ? "after " : "before ") + tensor, want, got);
    if (change) return change;
  }
  return std::optional<Trespass>{};
}

std::optional<Trespass> first_change(const std::string& tensor, std::span<const std::byte> want,
                                     std::span<const std::byte> got) {
  KV_CHECK(want.size() == got.size(), "sizes differ");
  if (want.empty() || std::memcmp(want.data(), got.data(), want.size()) == 0) return std::nullopt;
  const auto [w, g] = std::mismatch(want.begin(), want.end(), got.begin());
  Trespass trespass{.tensor = tensor,
                    .offset_bytes = static_cast<uint64_t>(w - want.begin()),
                    .bytes_changed = 0,
                    .want = std::to_integer<uint8_t>(*w),
                    .got = std::to_integer<uint8_t>(*g)};
  for (size_t i = 0; i < want.size(); ++i) trespass.bytes_changed += want[i] != got[i];
  return trespass;
}

}  // namespace kv
