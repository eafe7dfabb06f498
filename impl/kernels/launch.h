// Purpose: the host side of every kernel: one function for each, which launches and returns CUDA's
// answer.
// Contract: parameters were validated; at least one token. Called by dispatch/ only.
#pragma once

#include <cuda_runtime_api.h>

#include "impl/kernels/params.h"
#include "kvattn/tensor.h"

namespace kvattn {

cudaError_t launch_append(const AppendParams& params, DType dtype, cudaStream_t stream);

/// append_convert.cu: `dtype` is that of the new K and V, or of the queries.
cudaError_t launch_append_convert(const AppendParams& params, DType dtype, cudaStream_t stream);
cudaError_t launch_rotate(const RotateParams& params, DType dtype, cudaStream_t stream);

/// Keys that one step of the warp kernels' online softmax takes, and warps that share the keys of
/// a decode query.
constexpr uint32_t kWarpTileSlots = 32;
constexpr uint32_t kDecodeWarps = 4;

/// The kernels of one dtype. nullptr: there is none.
struct AttendLaunchers {
  using Launch = cudaError_t (*)(const AttendParams&, cudaStream_t);
  Launch reference;  // attend_warp.cuh
  Launch decode;     // attend_decode.cuh
  Launch prefill;    // attend_mma.cuh; fp16 and bf16
  Launch invariant;  // the same, divided into splits
  Launch latent;     // attend_latent.cuh; fp16 and bf16
};
extern const AttendLaunchers kAttendF16, kAttendBF16, kAttendF32;
/// Over a cache of 8-bit codes.
extern const AttendLaunchers kAttendCodesF16, kAttendCodesBF16, kAttendCodesF32;

/// Slots that one step of the online softmax takes in attend_mma.cuh.
constexpr uint32_t mma_tile_slots(int64_t head_dim) { return head_dim <= 128 ? 64 : 32; }

/// attend_mma.cuh
cudaError_t launch_prefill_f16(const AttendParams& params, cudaStream_t stream);
cudaError_t launch_prefill_bf16(const AttendParams& params, cudaStream_t stream);
cudaError_t launch_invariant_f16(const AttendParams& params, cudaStream_t stream);
cudaError_t launch_invariant_bf16(const AttendParams& params, cudaStream_t stream);

/// attend_mma_codes.cuh
cudaError_t launch_prefill_codes_f16(const AttendParams& params, cudaStream_t stream);
cudaError_t launch_prefill_codes_bf16(const AttendParams& params, cudaStream_t stream);
cudaError_t launch_invariant_codes_f16(const AttendParams& params, cudaStream_t stream);
cudaError_t launch_invariant_codes_bf16(const AttendParams& params, cudaStream_t stream);

/// attend_latent.cuh: K of 576 and V of 512 dimensions, the first of K.
constexpr uint32_t kLatentTileSlots = 32;
cudaError_t launch_latent_f16(const AttendParams& params, cudaStream_t stream);
cudaError_t launch_latent_bf16(const AttendParams& params, cudaStream_t stream);

/// attend_decode.cuh: adds up the splits of every unit.
cudaError_t launch_merge_f16(const AttendParams& params, cudaStream_t stream);
cudaError_t launch_merge_bf16(const AttendParams& params, cudaStream_t stream);

}  // namespace kvattn
