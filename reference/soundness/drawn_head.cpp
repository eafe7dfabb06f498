#include "reference/soundness/drawn_head.h"

#include <cmath>

#include "reference/rope.h"

namespace kv::reference {
namespace {

void draw_values(TestHead& head, Draw& draw) {
  const uint32_t n = head.options.slots, d = head.options.dim_v;
  const uint64_t kind = draw.below(6);
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t j = 0; j < d; ++j) {
      double& v = head.value[i * d + j];
      switch (kind) {
        case 0:
          head.set(v, (i % 2 ? -50 : 50) + draw.normal());
          break;  // cancelling
        case 1:
          head.set(v, i % d == j ? 1 + 0.5 * draw.uniform() : 0);
          break;  // sparse code
        case 2:
          head.set(v, static_cast<double>(draw.below(15)) - 7);
          break;  // integers
        case 3:
          head.set(v, 1);
          break;  // constant
        case 4:
          head.set(v, std::fabs(draw.normal()) + 0.5);
          break;  // one sign
        default:
          break;  // normal
      }
    }
  }
}

// Keys along the first query so that scores take the wanted shape.
void aim_key(TestHead& head, uint32_t slot, double score) {
  const uint32_t d = head.options.dim_k;
  double square = 0;
  for (uint32_t c = 0; c < d; ++c) square += head.query[c] * head.query[c];
  if (square == 0) return;
  const double factor = score / (head.options.scale * square);
  for (uint32_t c = 0; c < d; ++c) head.set(head.key[slot * d + c], factor * head.query[c]);
}

void draw_scores(TestHead& head, Draw& draw) {
  const uint32_t n = head.options.slots;
  switch (draw.below(9)) {
    case 0:  // uniform
      for (double& q : head.query) q = 0;
      break;
    case 1:  // ascending: a new maximum in every tile
      for (uint32_t i = 0; i < n; ++i) aim_key(head, i, 8.0 * i / n + 0.1 * draw.normal());
      break;
    case 2:  // descending
      for (uint32_t i = 0; i < n; ++i) aim_key(head, i, -12.0 * i / n);
      break;
    case 3:  // needle
      aim_key(head, static_cast<uint32_t>(draw.below(n)), 18);
      break;
    case 4:  // one dominating key, equal others: their roundings agree in sign
      for (uint32_t i = 0; i < n; ++i) aim_key(head, i, i == 0 ? 0 : -1.3 - 0.01 * draw.uniform());
      break;
    case 5: {  // powers of two: integer scores times ln 2, anchored in every block of 16
      head.options.scale = 0.693147182f;
      for (double& q : head.query) q = 0;
      for (uint32_t r = 0; r < head.options.rows; ++r) {
        head.query[r * head.options.dim_k + draw.below(head.options.dim_k)] = 1;
      }
      const uint64_t depth = draw.of({uint64_t{7}, uint64_t{30}});
      for (uint32_t i = 0; i < n; ++i) {
        for (uint32_t c = 0; c < head.options.dim_k; ++c) {
          const double score = i % 16 == 0 ? 0 : -static_cast<double>(draw.below(depth));
          head.set(head.key[i * head.options.dim_k + c], score);
        }
      }
      break;
    }
    default:
      break;
  }
}

void draw_masks(TestHead& head, Draw& draw) {
  const uint32_t n = head.options.slots;
  const uint64_t kind = draw.below(4);
  for (uint32_t r = 0; r < head.options.rows; ++r) {
    for (uint32_t s = 0; s < n; ++s) {
      const bool causal = s + head.options.rows <= n + r;
      const bool window = s + n / 3 + head.options.rows > n + r;
      head.visible[r][s] = kind == 0   ? draw.below(3) != 0
                           : kind == 1 ? causal
                           : kind == 2 ? causal && window
                                       : 1;
    }
  }
}

void draw_rotation(TestHead& head, Draw& draw) {
  const uint32_t dim = head.options.dim_k;
  const Rope rope{draw.of({RopePairing::kNeox, RopePairing::kInterleaved}),
                  draw.one_in(3) ? dim / 2 : dim, draw.of({10000.0, 500000.0})};
  const Rotator rotator(rope, {});
  const int64_t first = draw.of({int64_t{0}, int64_t{1000}, int64_t{-5}, int64_t{100000}});
  for (uint32_t r = 0; r < head.options.rows; ++r) {
    RotatedRow row = rotator.rotate(first + r, std::span(head.query).subspan(r * dim, dim));
    add_rounding(head.options.dtype, row);
    head.rotated.push_back(std::move(row.value));
    head.rotated_error.push_back(std::move(row.error));
  }
}

void draw_modifiers(TestHead& head, Draw& draw) {
  const uint32_t n = head.options.slots, rows = head.options.rows;
  if (draw.one_in(6)) head.options.softcap = draw.of({5.0f, 30.0f, 50.0f});
  if (draw.one_in(6)) head.slopes.assign(rows, draw.of({0.5f, 0.0625f, 0.00390625f}));
  if (draw.one_in(6)) head.sinks.assign(rows, static_cast<float>(4 * draw.normal()));
  if (draw.one_in(6) && head.options.dtype != DType::kE4m3) draw_rotation(head, draw);
  // int8 codes are large; everything else is near 1.
  const bool codes = head.options.kv() == DType::kI8;
  if (!codes && !draw.one_in(head.options.kv_dtype ? 2 : 8)) return;
  const double size = codes ? 0x1p-5 : 1;
  const bool each = draw.one_in(2);  // of a token, else of the tensor
  for (uint32_t s = 0; s < n; ++s) {
    const bool fresh = each || s == 0;
    const double key = size * (0.5 + draw.uniform()), value = size * (0.5 + draw.uniform());
    head.key_scales.push_back(fresh ? static_cast<float>(key) : head.key_scales[0]);
    head.value_scales.push_back(fresh ? static_cast<float>(value) : head.value_scales[0]);
  }
}

// The 8-bit formats of a cache under wider queries.
void draw_quantised(TestHead::Options& o, Draw& draw) {
  if (o.dtype == DType::kE4m3 || !draw.one_in(4)) return;
  o.kv_dtype = draw.of({DType::kE4m3, DType::kE5m2, DType::kI8});
  if (o.kv_dtype == DType::kI8) o.key_size = o.value_size = 32;
}

}  // namespace

TestHead draw_head(Draw& draw, const CampaignSize& size) {
  TestHead::Options o;
  o.dtype = draw.of({DType::kF16, DType::kBf16, DType::kE4m3, DType::kF32, DType::kF16});
  o.output_dtype = o.dtype == DType::kE4m3 ? DType::kBf16 : o.dtype;
  if (draw.one_in(3)) o.output_dtype = DType::kF32;  // shows what rounding would hide
  o.rows = 1 + static_cast<uint32_t>(draw.below(3));
  o.slots = o.rows + static_cast<uint32_t>(draw.below(draw.one_in(3) ? 24 : size.slots_max));
  o.dim_k = draw.of({16u, 64u, 80u, 128u});
  o.dim_v = draw.of({32u, 48u, 64u});
  o.scale = draw.one_in(8) ? 1.0f : static_cast<float>(1 / std::sqrt(static_cast<double>(o.dim_k)));
  o.seed = draw.below(uint64_t{1} << 60);
  o.query_size = draw.of({1.0, 1.0, 8.0, 0.004, 0x1p-18});
  if (draw.one_in(12)) o.key_size = 0x1p8;
  draw_quantised(o, draw);
  TestHead head(o);
  draw_values(head, draw);
  draw_scores(head, draw);
  draw_masks(head, draw);
  draw_modifiers(head, draw);
  return head;
}

KernelConfig draw_kernel(Draw& draw, const TestHead& head) {
  KernelConfig k;
  const bool fp8 = head.options.dtype == DType::kE4m3;
  const bool fp32 = head.options.dtype == DType::kF32;
  if (fp32 || draw.one_in(4)) {
    k.scores = k.values = kFmaChain;
    k.architecture = "generic";
    k.tile_slots = draw.of({1u, 8u, 16u, 32u, 64u});
  } else {
    const Architecture& a = architectures()[2 + draw.below(5)];  // real ones
    k.scores = k.values = fp8 ? a.mma8 : a.mma16;
    k.architecture = std::string(a.name);
    k.tile_slots = draw.of({16u, 32u, 64u, 128u});
  }
  const bool rounded = k.values.fused_multiply_add ? draw.one_in(4) && !fp32 : true;
  k.probability_dtype = rounded ? head.options.dtype : DType::kF32;
  k.order = draw.of({VisitOrder::kAscending, VisitOrder::kDescending, VisitOrder::kShuffled});
  k.row_sum_of_rounded = draw.one_in(2);
  k.exp2_error = draw.of({Exp2Error::kNone, Exp2Error::kRandom, Exp2Error::kHigh, Exp2Error::kLow,
                          Exp2Error::kByParity});
  k.splits = draw.one_in(4) ? 2 + static_cast<uint32_t>(draw.below(3)) : 1;
  k.sequential_merge = draw.one_in(2);
  k.lazy_rescale = !fp8 && draw.one_in(4);
  k.fused_scaling = !draw.one_in(4);
  k.unfused = draw.one_in(8);
  if (k.unfused) {
    k.splits = 1;
    k.row_sum_of_rounded = false;
  }
  k.tanh_error = static_cast<uint32_t>(draw.below(3));
  k.division_error = static_cast<uint32_t>(draw.below(2));
  k.stored_exponents = draw.one_in(2);
  k.scales_scores = draw.one_in(2);
  k.scales_weights = draw.one_in(2) && k.probability_dtype == DType::kF32;
  return k;
}

}  // namespace kv::reference
