// Purpose: host memory of a size known at run time that is about to be written in full.
// Contract: the bytes are arbitrary at first. A vector's would be zeroed for nothing, and there are
// some hundred thousand of them in every case.
// Example:  HostBytes now(buffer.bytes()); KV_RETURN_IF_ERROR(buffer.download(now.span()));
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace kv {

class HostBytes {
 public:
  HostBytes() = default;
  explicit HostBytes(size_t size)
      : bytes_(std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}

  size_t size() const { return size_; }
  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  std::span<std::byte> span() { return {data(), size_}; }
  std::span<const std::byte> span() const { return {data(), size_}; }
  std::byte& operator[](size_t i) { return bytes_[i]; }
  const std::byte& operator[](size_t i) const { return bytes_[i]; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
};

}  // namespace kv
