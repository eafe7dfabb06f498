// Purpose: where everything lies in the 64-bit space that kernels see.
// Contract: fixed addresses, so that no result depends on address randomisation. Global memory is
// host memory at the same address. Its shadows are linear in the address and, like it, only
// reserved: the pages that nobody touches cost nothing. The generic windows of shared, local and
// parameter space are not backed; the executor translates them.
#pragma once

#include <cstdint>

namespace kv::simt::layout {

inline constexpr uint64_t kHeapBase = 0x2000'0000'0000;
inline constexpr uint64_t kHeapBytes = uint64_t{1} << 41;
inline constexpr uint64_t kSymbolBase = kHeapBase + kHeapBytes;  // variables of modules
inline constexpr uint64_t kSymbolBytes = uint64_t{1} << 36;
inline constexpr uint64_t kEnd = kSymbolBase + kSymbolBytes;

/// One bit for each byte of global memory: 1 = defined.
inline constexpr uint64_t kBitsBase = 0x2800'0000'0000;
/// 32-bit stamps of the last writer and the last reader, one for each granule of 1, 2 or 4 bytes.
inline constexpr uint64_t kWriterBase = 0x3000'0000'0000;
inline constexpr uint64_t kReaderBase = 0x4000'0000'0000;
/// Both stamps of whole chunks of 16 bytes, side by side (check/global_race.h).
inline constexpr uint64_t kChunkBase = 0x5000'0000'0000;

inline constexpr uint64_t kWindowBytes = uint64_t{1} << 32;
inline constexpr uint64_t kSharedWindow = 0x1000'0000'0000;
inline constexpr uint64_t kLocalWindow = 0x1100'0000'0000;
inline constexpr uint64_t kParamWindow = 0x1200'0000'0000;

/// In parameter space, kernel parameters start at 0; the frames of called functions and their
/// argument slots lie above this offset, one copy for each thread.
inline constexpr uint64_t kParamFrame = uint64_t{1} << 28;

/// Content of fresh memory: a NaN in every format, -1 as an integer.
inline constexpr uint8_t kPoison = 0xff;

}  // namespace kv::simt::layout
