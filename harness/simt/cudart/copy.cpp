#include "harness/simt/cudart/copy.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/hash.h"

namespace kv::simt::cudart {
namespace {

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(value));
  return text;
}

/// Rows of a pitched range; pitch is the width when there is one row.
struct Rows {
  uint64_t base = 0, pitch = 0, width = 0, count = 0;

  uint64_t row(uint64_t i) const { return base + i * pitch; }
  /// Bytes from the first to the last, or nothing if that overflows.
  std::optional<uint64_t> span() const {
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(pitch, count - 1, &bytes)) return std::nullopt;
    if (__builtin_add_overflow(bytes, width, &bytes)) return std::nullopt;
    if (base + bytes < base) return std::nullopt;
    return bytes;
  }
};

Rows rows_of(const void* base, size_t pitch, size_t width, size_t count) {
  return {address_of(base), count == 1 ? width : pitch, width, count};
}

Place place_of(const Runtime& runtime, const Rows& rows) {
  const auto bytes = rows.span();
  if (rows.base == 0 || !bytes) return Place::kInvalid;
  return runtime.memory.place(rows.base, *bytes);
}

/// Reports a range that is not inside one live allocation.
cudaError_t refuse_range(Runtime& runtime, const char* call, const char* which, const Rows& rows) {
  const Range* range = runtime.memory.find(rows.base);
  std::string sentence = std::string(which) + " " + hex(rows.base) + ", " +
                         std::to_string(rows.span().value_or(0)) + " bytes, ";
  if (rows.base == 0) {
    sentence = std::string(which) + " is a null pointer";
  } else if (range) {
    sentence += "leaves allocation " + std::to_string(range->number) + ", " +
                std::to_string(range->bytes) + " bytes at " + hex(range->base);
  } else {
    sentence += "is not inside a live allocation";
  }
  runtime.report_misuse(call, sentence, rows.base);
  return cudaErrorInvalidValue;
}

bool is_host(Place place) { return place == Place::kPageable || place == Place::kPinned; }

/// True if `place` may stand on the side that `kind` calls the host's or the device's.
bool fits(Place place, bool host_side) {
  if (place == Place::kManaged || place == Place::kPinned) return true;  // both can use it
  return is_host(place) == host_side;
}

bool fits_direction(cudaMemcpyKind kind, Place to, Place from) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return fits(to, true) && fits(from, true);
    case cudaMemcpyHostToDevice:
      return fits(to, false) && fits(from, true);
    case cudaMemcpyDeviceToHost:
      return fits(to, true) && fits(from, false);
    case cudaMemcpyDeviceToDevice:
      return fits(to, false) && fits(from, false);
    default:
      return true;
  }
}

cudaError_t copy_rows(Device& device, const Rows& to, const Rows& from) {
  for (uint64_t i = 0; i < to.count; ++i) {
    if (!device.copy(to.row(i), from.row(i), to.width).ok()) return cudaErrorIllegalAddress;
  }
  return cudaSuccess;
}

/// The copy, with its source's bytes taken now.
Operation staged_copy(Runtime& runtime, const Rows& to, const Rows& from) {
  auto bytes = std::make_shared_for_overwrite<uint8_t[]>(from.width * from.count);
  for (uint64_t i = 0; i < from.count; ++i) {
    std::memcpy(bytes.get() + i * from.width, reinterpret_cast<const void*>(from.row(i)),
                from.width);
  }
  return {.run = [&runtime, to, bytes] {
    return copy_rows(runtime.device, to, {address_of(bytes.get()), to.width, to.width, to.count});
  }};
}

Operation late_copy(Runtime& runtime, const Rows& to, const Rows& from) {
  return {.run = [&runtime, to, from] { return copy_rows(runtime.device, to, from); }};
}

uint64_t digest_of(const Rows& rows) {
  Hasher hasher;
  for (uint64_t i = 0; i < rows.count; ++i) {
    hasher.add_bytes({reinterpret_cast<const std::byte*>(rows.row(i)), rows.width});
  }
  return hasher.digest();
}

/// The copy, and before it a look at its source: if nothing that was issued can have written host
/// memory since the call, what has changed was changed by the program while the copy was pending.
Operation watched_copy(Runtime& runtime, const char* call, const Rows& to, const Rows& from) {
  return {
      .run = [&runtime, call, to, from, digest = digest_of(from), writes = runtime.host_writes] {
        if (runtime.host_writes == writes && digest_of(from) != digest) {
          runtime.report_misuse(call,
                                "the program changed the pinned source " + hex(from.base) + ", " +
                                    std::to_string(from.span().value_or(0)) +
                                    " bytes, after the call and before the copy was made: wait for "
                                    "the stream or an event first",
                                from.base);
        }
        return copy_rows(runtime.device, to, from);
      }};
}

cudaError_t fill_rows(Device& device, const Rows& rows, uint8_t value) {
  for (uint64_t i = 0; i < rows.count; ++i) {
    if (!device.is_device_address(rows.row(i))) {
      std::memset(reinterpret_cast<void*>(rows.row(i)), value, rows.width);
    } else if (!device.fill(rows.row(i), value, rows.width).ok()) {
      return cudaErrorIllegalAddress;
    }
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t copy(Runtime& runtime, const CopyCall& call) {
  Stream* stream = stream_of(runtime, call.stream, call.name);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (call.kind < cudaMemcpyHostToHost || call.kind > cudaMemcpyDefault) {
    return cudaErrorInvalidMemcpyDirection;
  }
  if (call.width_bytes == 0 || call.rows == 0) return cudaSuccess;
  const Rows to = rows_of(call.to, call.to_pitch_bytes, call.width_bytes, call.rows);
  const Rows from = rows_of(call.from, call.from_pitch_bytes, call.width_bytes, call.rows);
  if (to.pitch < to.width || from.pitch < from.width) return cudaErrorInvalidPitchValue;
  const Place to_place = place_of(runtime, to), from_place = place_of(runtime, from);
  if (to_place == Place::kInvalid) return refuse_range(runtime, call.name, "destination", to);
  if (from_place == Place::kInvalid) return refuse_range(runtime, call.name, "source", from);
  if (!fits_direction(call.kind, to_place, from_place)) {
    runtime.report_misuse(call.name, "the pointers do not match the direction of the copy",
                          is_host(to_place) ? from.base : to.base);
    return cudaErrorInvalidValue;
  }

  const bool touches_host = is_host(to_place) || is_host(from_place);
  const bool captured = stream->capture != nullptr;
  const bool waits = call.asynchronous ? to_place == Place::kPageable : touches_host;
  // Bytes that are used before anybody else acts need not be kept.
  const bool staged = from_place == Place::kPageable && !captured && !(waits && runtime.is_idle());
  const bool watched =
      from_place == Place::kPinned && to_place == Place::kDevice && !captured && !waits;
  Operation operation = staged    ? staged_copy(runtime, to, from)
                        : watched ? watched_copy(runtime, call.name, to, from)
                                  : late_copy(runtime, to, from);
  operation.touches_host = touches_host && !staged;
  operation.may_write_host = to_place != Place::kDevice;
  return waits ? runtime.perform(*stream, std::move(operation))
               : runtime.submit(*stream, std::move(operation));
}

cudaError_t fill(Runtime& runtime, const FillCall& call) {
  Stream* stream = stream_of(runtime, call.stream, call.name);
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (call.width_bytes == 0 || call.rows == 0) return cudaSuccess;
  const Rows rows = rows_of(call.to, call.pitch_bytes, call.width_bytes, call.rows);
  if (rows.pitch < rows.width) return cudaErrorInvalidPitchValue;
  const Place place = place_of(runtime, rows);
  if (place == Place::kInvalid || place == Place::kPageable) {
    return refuse_range(runtime, call.name, "destination", rows);
  }
  const auto value = static_cast<uint8_t>(call.value);
  const bool touches_host = place == Place::kPinned;
  Operation operation = {
      .run = [&runtime, rows, value] { return fill_rows(runtime.device, rows, value); },
      .touches_host = touches_host,
      .may_write_host = place != Place::kDevice};
  const bool waits = touches_host || place == Place::kManaged;
  return waits ? runtime.perform(*stream, std::move(operation))
               : runtime.submit(*stream, std::move(operation));
}

}  // namespace kv::simt::cudart
