// Purpose: the PTX inside the fat binary that nvcc embeds in a host object.
// Contract: bounded. Offsets, sizes and counts are checked before they are believed; entries view
// the caller's bytes, nothing is decompressed until ptx_text(). Layout found by experiment with
// nvcc 13.0 (the wrapper is documented in the toolkit's fatbinary_section.h):
//   fatbin  u32 magic 0xba55ed50, u16 version 1, u16 header bytes, u64 bytes of all entries
//   entry   see fatbin.cpp
// Example:
//   auto entries = read_fatbin_wrapper(wrapper);     // as given to __cudaRegisterFatBinary
//   auto text = select_ptx(*entries, 80);            // PTX for sm_80 or below, decompressed
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/result.h"

namespace kv::simt::ptx {

struct FatbinEntry {
  enum class Kind : uint8_t { kPtx, kCubin, kOther };
  enum class Compression : uint8_t { kNone, kLz4, kZstd };
  Kind kind = Kind::kOther;
  Compression compression = Compression::kNone;
  uint32_t sm = 0;
  uint16_t isa_major = 0, isa_minor = 0;
  bool has_debug_info = false;            // compiled with -G
  std::span<const uint8_t> payload;       // as stored
  uint64_t raw_bytes = 0;                 // after decompression
  std::string_view source_name, options;  // often empty
};

struct FatbinLimits {
  static constexpr uint64_t kContainerBytes = uint64_t{4} << 30;
  static constexpr uint64_t kRawBytes = uint64_t{512} << 20;
  static constexpr uint64_t kRatio = 4096;  // decompressed to stored
  static constexpr size_t kEntries = 256;
};

/// Reads a whole container of known length.
Result<std::vector<FatbinEntry>> read_fatbin(std::span<const uint8_t> bytes);

/// Reads from the wrapper that the runtime is given. Its pointers are trusted as a program's own
/// are; the container's length is taken from its header and must be within kContainerBytes.
Result<std::vector<FatbinEntry>> read_fatbin_wrapper(const void* wrapper);

/// The text of a PTX entry, decompressed, without its closing zeros.
Result<std::string> ptx_text(const FatbinEntry& entry);

/// The text of the highest PTX entry not above the simulated model, such as 80 or 90.
Result<std::string> select_ptx(std::span<const FatbinEntry> entries, uint32_t model_sm);

}  // namespace kv::simt::ptx
