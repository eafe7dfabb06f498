// Purpose: device memory of exactly the size that a tensor spans, so that one byte too far is seen.
// Contract: on the CPU device the allocation is exact and the device itself watches every byte
// around it; on a GPU it stands between two red zones whose bytes are compared afterwards. Errors
// are those of the CUDA runtime; they mean that the device is out of memory or broken. Freed by the
// destructor.
// Example: KV_ASSIGN_OR_RETURN(auto q, DeviceBuffer::allocate(runtime, bytes));
//          KV_RETURN_IF_ERROR(q.upload(host)); ... auto damage = q.damaged_red_zone("query");
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "harness/core/result.h"
#include "harness/plugin/runtime.h"
#include "harness/run/observation.h"

namespace kv {

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  /// `bytes` of memory aligned to 256; no memory at all (data() is null) for 0.
  static Result<DeviceBuffer> allocate(const CudaRuntime& runtime, uint64_t bytes);

  void* data() const;
  uint64_t address() const { return reinterpret_cast<uint64_t>(data()); }
  uint64_t bytes() const { return bytes_; }

  Result<void> upload(std::span<const std::byte> host, uint64_t offset = 0) const;
  Result<void> download(std::span<std::byte> host, uint64_t offset = 0) const;
  Result<void> fill(std::byte value) const;

  /// CPU device only, nothing on a GPU: rights of kernels (KV_SIMT_ACCESS_*), and "nobody has
  /// written these bytes".
  void set_access(uint64_t offset, uint64_t bytes, uint32_t access) const;
  void set_undefined(uint64_t offset, uint64_t bytes) const;
  /// CPU device only, nothing on a GPU: the first bytes of a range that nobody has written, or that
  /// somebody gave undefined data; and a finding of the device for them, that calls them `what`.
  struct Run {
    uint64_t offset = 0, bytes = 0;  // offset: from the start of the buffer; no bytes: all defined
  };
  Run first_undefined(uint64_t offset, uint64_t bytes) const;
  void report_undefined(const Run& run, const std::string& what) const;

  /// GPU: the first byte of a red zone that changed. `tensor` names the buffer in the finding.
  Result<std::optional<Trespass>> damaged_red_zone(const std::string& tensor) const;

 private:
  const CudaRuntime* runtime_ = nullptr;
  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;
  uint64_t red_zone_bytes_ = 0;
};

/// The first difference between two equally long runs of bytes, as a trespass on `tensor`.
std::optional<Trespass> first_change(const std::string& tensor, std::span<const std::byte> want,
                                     std::span<const std::byte> got);

}  // namespace kv
