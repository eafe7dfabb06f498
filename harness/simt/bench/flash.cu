// The kernel that speeds are quoted for: flash attention forward, fp16, head dimension 64, one or
// four warps of 16 query rows each, key tiles of 64 double-buffered with cp.async, ldmatrix and
// mma.m16n8k16 (Dao, "FlashAttention-2", 2023). Plain on purpose: no paging, no masks but the tail.
#include <cuda_fp16.h>

#include <cstdint>

#include "harness/simt/bench/flash_parameters.h"

namespace {

constexpr int kDim = 64, kTile = 64, kChunks = kDim / 8;  // a chunk is 16 bytes

__device__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
/// Copies 16 bytes, or writes zeros.
__device__ void copy16(uint32_t to, const void* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(inside ? 16 : 0));
}
__device__ void load_matrices(uint32_t at, uint32_t (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}
__device__ void load_transposed(uint32_t at, uint32_t (&r)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(at));
}
__device__ void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ uint32_t pack(float low, float high) {
  const half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}
/// Offset, in halves, of a chunk of a row; chunks are swizzled against bank conflicts.
__device__ int swizzled(int row, int chunk) { return row * kDim + ((chunk ^ (row & 7)) << 3); }

template <int kWarps>
struct Flash {
  static constexpr int kRows = kWarps * 16, kThreads = kWarps * 32;

  const FlashParameters& p;
  half *queries, *keys, *values;  // shared memory
  int thread = threadIdx.x, lane = thread & 31, warp = thread >> 5;
  int first = blockIdx.x * kRows;
  int64_t head = blockIdx.y;

  __device__ void load_rows(half* to, const half* from, int rows, int first_row, int limit,
                            int64_t stride) {
    for (int i = thread; i < rows * kChunks; i += kThreads) {
      const int row = i / kChunks, chunk = i % kChunks;
      const bool inside = first_row + row < limit;
      const int64_t at = inside ? (first_row + row) * stride + chunk * 8 : 0;
      copy16(shared_address(to + swizzled(row, chunk)), from + at, inside);
    }
  }
  __device__ void load_tile(int tile, int buffer) {
    const int64_t offset = head * p.key_head;
    load_rows(keys + buffer * kTile * kDim, p.k + offset, kTile, tile * kTile, p.keys, p.key_row);
    load_rows(values + buffer * kTile * kDim, p.v + offset, kTile, tile * kTile, p.keys, p.key_row);
    asm volatile("cp.async.commit_group;");
  }

  __device__ void scores(const half* tile, const uint32_t (&q)[4][4], float (&s)[8][4]) {
#pragma unroll
    for (int n = 0; n < 8; ++n) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0;
#pragma unroll
    for (int d = 0; d < 4; ++d) {
#pragma unroll
      for (int n = 0; n < 8; n += 2) {
        uint32_t b[4];
        load_matrices(shared_address(tile + swizzled(n * 8 + ((lane >> 4) << 3) + (lane & 7),
                                                     d * 2 + ((lane >> 3) & 1))),
                      b);
        multiply(s[n], q[d], b[0], b[1]);
        multiply(s[n + 1], q[d], b[2], b[3]);
      }
    }
  }
  __device__ void mask(int tile, float (&s)[8][4]) {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int column = tile * kTile + n * 8 + (lane & 3) * 2 + (j & 1);
        s[n][j] = column < p.keys ? s[n][j] * (p.scale * 1.4426950408889634f) : -INFINITY;
      }
    }
  }
  /// Online softmax of one half of the rows; the scores become weights.
  __device__ void softmax(int h, float (&s)[8][4], float (&o)[8][4], float& top, float& sum) {
    float m = top;
#pragma unroll
    for (int n = 0; n < 8; ++n) m = fmaxf(m, fmaxf(s[n][2 * h], s[n][2 * h + 1]));
    m = fmaxf(m, __shfl_xor_sync(~0u, m, 1));
    m = fmaxf(m, __shfl_xor_sync(~0u, m, 2));
    const float base = m == -INFINITY ? 0.0f : m, factor = exp2f(top - base);
    top = m;
    float added = 0;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int j = 2 * h; j < 2 * h + 2; ++j) {
        s[n][j] = exp2f(s[n][j] - base);
        added += s[n][j];
        o[n][j] *= factor;
      }
    }
    sum = sum * factor + added;
  }
  __device__ void outputs(const half* tile, const float (&s)[8][4], float (&o)[8][4]) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const uint32_t a[4] = {pack(s[2 * k][0], s[2 * k][1]), pack(s[2 * k][2], s[2 * k][3]),
                             pack(s[2 * k + 1][0], s[2 * k + 1][1]),
                             pack(s[2 * k + 1][2], s[2 * k + 1][3])};
#pragma unroll
      for (int n = 0; n < 8; n += 2) {
        uint32_t b[4];
        load_transposed(shared_address(tile + swizzled(k * 16 + (lane & 15), n + (lane >> 4))), b);
        multiply(o[n], a, b[0], b[1]);
        multiply(o[n + 1], a, b[2], b[3]);
      }
    }
  }
  __device__ void store(int h, const float (&o)[8][4], float top, float sum) {
    sum += __shfl_xor_sync(~0u, sum, 1);
    sum += __shfl_xor_sync(~0u, sum, 2);
    const int row = first + warp * 16 + (lane >> 2) + h * 8;
    const float inverse = sum > 0 ? 1.0f / sum : 0.0f;
    if (row >= p.queries) return;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      half* const at = p.o + head * p.query_head + row * p.query_row + n * 8 + (lane & 3) * 2;
      *reinterpret_cast<half2*>(at) =
          __floats2half2_rn(o[n][2 * h] * inverse, o[n][2 * h + 1] * inverse);
    }
    if ((lane & 3) == 0) {
      p.lse[head * p.queries + row] = sum > 0 ? top * 0.6931471805599453f + logf(sum) : -INFINITY;
    }
  }

  __device__ void run() {
    load_rows(queries, p.q + head * p.query_head, kRows, first, p.queries, p.query_row);
    load_tile(0, 0);
    uint32_t q[4][4];
    float o[8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    const int tiles = (p.keys + kTile - 1) / kTile;
    for (int t = 0; t < tiles; ++t) {
      const int buffer = t & 1;
      if (t + 1 < tiles) {
        load_tile(t + 1, buffer ^ 1);
        asm volatile("cp.async.wait_group 1;");
      } else {
        asm volatile("cp.async.wait_group 0;");
      }
      __syncthreads();
      if (t == 0) {
        for (int d = 0; d < 4; ++d) {
          const int row = warp * 16 + (lane & 15);
          load_matrices(shared_address(queries + swizzled(row, d * 2 + (lane >> 4))), q[d]);
        }
      }
      float s[8][4];
      scores(keys + buffer * kTile * kDim, q, s);
      mask(t, s);
#pragma unroll
      for (int h = 0; h < 2; ++h) softmax(h, s, o, top[h], sum[h]);
      outputs(values + buffer * kTile * kDim, s, o);
      __syncthreads();
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) store(h, o, top[h], sum[h]);
  }
};

template <int kWarps>
__device__ void flash(const FlashParameters& p) {
  extern __shared__ __align__(16) half memory[];
  half* const keys = memory + kWarps * 16 * kDim;
  Flash<kWarps>{p, memory, keys, keys + 2 * kTile * kDim}.run();
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32) flash_1(FlashParameters p) { flash<1>(p); }
extern "C" __global__ void __launch_bounds__(128) flash_4(FlashParameters p) { flash<4>(p); }
