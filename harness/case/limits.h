// Purpose: the bounds of everything that a case may ask for, each with its reason.
// Contract: a case inside the limits can be parsed, planned, run and judged without overflowing
// 64-bit arithmetic and without exhausting an ordinary CI machine. A case outside is bad input.
#pragma once

#include <cstdint>

namespace kv::limits {

// ---- text
inline constexpr uint64_t kFileBytesMax = 32u << 20;  // a 1,000-request trace is 10 MiB
inline constexpr uint64_t kJsonValuesMax = 4u << 20;  // bounds the parsed tree to about 300 MiB
inline constexpr uint32_t kJsonDepthMax = 16;         // the schema needs 5
inline constexpr uint32_t kNameBytesMax = 256;        // names become file names
inline constexpr uint32_t kCommentBytesMax = 16384;   // a page of prose
inline constexpr uint32_t kPathBytesMax = 4096;       // PATH_MAX of Linux
inline constexpr uint32_t kPrecedingMax = 256;        // cases run before one case

// ---- shape: the largest models have 128 heads of 256 and about 130 layers
inline constexpr uint32_t kLayersMax = 256;
inline constexpr uint32_t kHeadsMax = 1024;
inline constexpr uint32_t kHeadDimMax = 1024;  // 576 for latent attention
inline constexpr double kScaleMax = 1e6;       // scores stay far from fp32 overflow
inline constexpr double kRopeThetaMax = 1e12;
inline constexpr int64_t kWindowMax = int64_t{1} << 31;

// ---- pool
inline constexpr uint32_t kPageSlotsMax = 256;
inline constexpr uint32_t kPageCountMax = 1u << 20;
inline constexpr double kOvercommitMax = 1024;
inline constexpr uint64_t kPoolBytesMax = uint64_t{2} << 30;  // K and V of all layers together

// ---- engine
inline constexpr uint32_t kAsyncDepthMax = 3;  // engines of today run one step ahead

// ---- data
inline constexpr uint32_t kOverridesMax = 65536;  // more belongs into the side-car
inline constexpr uint32_t kKeyExponentMax = 12;
inline constexpr double kLogitShiftMax = 1e5;

// ---- operations
inline constexpr uint32_t kOpsMax = 1u << 18;   // 1,000 real requests need 30,000 steps
inline constexpr uint32_t kStepRowsMax = 1024;  // largest batch of a serving engine
inline constexpr uint64_t kRowsMax = 1u << 20;  // of all steps together
inline constexpr uint32_t kRequestIdMax = (1u << 20) - 1;
inline constexpr uint32_t kRowTokensMax = 1u << 17;  // one chunk, PAD slots or queries of a row
inline constexpr uint64_t kSlotsMax = 1u << 22;      // appended by the whole case
inline constexpr uint64_t kQueriesMax = 1u << 22;    // query rows of the whole case
inline constexpr uint64_t kPromptTokensMax = 1u << 22;
inline constexpr int64_t kPositionOffsetMax = int64_t{1} << 40;  // 32-bit positions must overflow
inline constexpr uint32_t kPrefixDepthMax = 256;  // A shares with B shares with C ...
inline constexpr uint32_t kSplitSlotsMax = 1u << 22;
inline constexpr uint32_t kRepeatMax = 1024;
inline constexpr uint64_t kStepBytesMax = uint64_t{1} << 30;  // Q, O and new K, V of one step
/// Sum over query rows of keys * query heads * (head_dim_k + head_dim_v) * layers: about an hour
/// of the high-precision reference.
inline constexpr uint64_t kWorkMax = uint64_t{1} << 43;

}  // namespace kv::limits
