#include "harness/case/axis.h"

#include <algorithm>
#include <array>

namespace kv {
namespace {

constexpr auto kAxisNames = std::to_array<std::string_view>({"bf16",
                                                             "f32",
                                                             "head dimension 80",
                                                             "head dimension 96",
                                                             "head dimension 128",
                                                             "head dimension 256",
                                                             "odd head dimension",
                                                             "head groups",
                                                             "softcap",
                                                             "ALiBi",
                                                             "sinks",
                                                             "top-left causal",
                                                             "left window",
                                                             "right window",
                                                             "packed mask",
                                                             "keep mask",
                                                             "block mask",
                                                             "additive mask",
                                                             "padding holes",
                                                             "trees",
                                                             "split sizes",
                                                             "e4m3 cache",
                                                             "e5m2 cache",
                                                             "int8 cache",
                                                             "scale of a tensor",
                                                             "scale of a head",
                                                             "scale of a token",
                                                             "scale of a page",
                                                             "neox RoPE",
                                                             "interleaved RoPE",
                                                             "partial RoPE",
                                                             "value dimension",
                                                             "latent cache",
                                                             "merges of states"});
static_assert(kAxisNames.size() == kAxisCount);

constexpr RequestId kRequest(0);

op::Step& step_of(Case& c) { return std::get<op::Step>(c.ops[1]); }

void set_dtype(Shape& shape, DType type) {
  shape.query_dtype = shape.kv_dtype = shape.output_dtype = type;
}
void set_dim(Shape& shape, uint32_t dim) { shape.head_dim_k = shape.head_dim_v = dim; }

Axis axis_of_dim(uint32_t dim) {
  switch (dim) {
    case 80:
      return Axis::kHeadDim80;
    case 96:
      return Axis::kHeadDim96;
    case 128:
      return Axis::kHeadDim128;
    case 256:
      return Axis::kHeadDim256;
    default:
      return Axis::kHeadDimOdd;
  }
}

Axis axis_of(MaskEncoding encoding) {
  return static_cast<Axis>(static_cast<int>(Axis::kMaskPackedBits) + static_cast<int>(encoding) -
                           1);
}

Axis axis_of_cache(DType type) {
  return type == DType::kE4m3   ? Axis::kCacheE4m3
         : type == DType::kE5m2 ? Axis::kCacheE5m2
                                : Axis::kCacheI8;
}

Axis axis_of(KvScale scale) {
  return static_cast<Axis>(static_cast<int>(Axis::kScaleTensor) + static_cast<int>(scale) - 1);
}

Axis axis_of(RopePairing pairing) {
  return pairing == RopePairing::kNeox ? Axis::kRopeNeox : Axis::kRopeInterleaved;
}

/// The axes of how K and V are stored.
void set_format(Axis axis, Shape& s) {
  for (const DType type : {DType::kE4m3, DType::kE5m2, DType::kI8}) {
    if (axis_of_cache(type) == axis) s.kv_dtype = type;
  }
  for (const KvScale scale : {KvScale::kTensor, KvScale::kHead, KvScale::kToken, KvScale::kPage}) {
    if (axis_of(scale) != axis) continue;
    s.kv_dtype = DType::kE4m3;
    s.kv_scale = scale;
  }
  for (const RopePairing pairing : {RopePairing::kNeox, RopePairing::kInterleaved}) {
    if (axis_of(pairing) == axis) s.rope = {.pairing = pairing, .dims = s.head_dim_k};
  }
  if (axis == Axis::kRopePartial)
    s.rope = {.pairing = RopePairing::kNeox, .dims = s.head_dim_k / 2};
}

void leave_out_formats(const AxisSet& offered, Shape& s) {
  const bool codes = dtype_bytes(s.kv_dtype) == 1;
  const bool has_scale = s.kv_scale != KvScale::kNone;
  if (has_scale && !offered.has(axis_of(s.kv_scale))) s.kv_scale = KvScale::kNone;
  if (codes && !offered.has(axis_of_cache(s.kv_dtype))) {
    s.kv_dtype = s.query_dtype;
    s.kv_scale = KvScale::kNone;
  }
  if (s.rope.pairing == RopePairing::kNone) return;
  s.rope.dims = std::min(s.rope.dims, s.head_dim_k / 2 * 2);
  const bool partial = s.rope.dims < s.head_dim_k && !offered.has(Axis::kRopePartial);
  if (partial || !offered.has(axis_of(s.rope.pairing))) s.rope = {};
}

/// The axes that are one value of many.
void set_table_entry(Axis axis, Case& c) {
  set_format(axis, c.shape);
  for (const uint32_t dim : {80, 96, 128, 256, 72}) {
    if (axis_of_dim(dim) == axis) set_dim(c.shape, dim);
  }
  for (const MaskEncoding encoding : {MaskEncoding::kPackedBits, MaskEncoding::kBoolKeep,
                                      MaskEncoding::kBoolBlock, MaskEncoding::kAdditive}) {
    if (axis_of(encoding) == axis) c.mask.encoding = encoding;
  }
}

void leave_out_dims(const AxisSet& offered, Shape& s) {
  if (s.value_in_key && offered.has(Axis::kLatent)) return;
  if (s.value_in_key) set_dim(s, 64);
  s.value_in_key = false;
  if (!offered.has(Axis::kValueDim)) s.head_dim_v = s.head_dim_k;
  for (const uint32_t dim : {s.head_dim_k, s.head_dim_v}) {
    if (dim != 64 && !offered.has(axis_of_dim(dim))) set_dim(s, 64);
  }
}

}  // namespace

std::string_view axis_name(Axis axis) { return kAxisNames[static_cast<size_t>(axis)]; }

Case plain_case() {
  Case c;
  c.ops = {op::Admit{.request = kRequest, .prompt_tokens = 4},
           op::Step{.rows = {{.request = kRequest, .append = 4, .queries = 4}}}};
  return c;
}

Case with_axis(Axis axis) {
  Case c = plain_case();
  switch (axis) {
    case Axis::kBf16:
      set_dtype(c.shape, DType::kBf16);
      break;
    case Axis::kF32:
      set_dtype(c.shape, DType::kF32);
      break;
    case Axis::kGroups:
      c.shape.query_heads = 3;
      break;
    case Axis::kSoftcap:
      c.shape.softcap = 30;
      break;
    case Axis::kAlibi:
      c.shape.alibi = true;
      break;
    case Axis::kSinks:
      c.shape.sinks = true;
      break;
    case Axis::kTopLeft:
      c.mask.causal = Causal::kTopLeft;
      break;
    case Axis::kWindowLeft:
      c.mask.window_left = 3;
      break;
    case Axis::kWindowRight:
      c.mask.causal = Causal::kNone;
      c.mask.window_right = 3;
      break;
    case Axis::kPaddingHoles:
      c.mask.encoding = MaskEncoding::kBoolKeep;
      step_of(c).rows[0].pad_right = 1;
      c.ops.emplace_back(op::Step{.rows = {{.request = kRequest, .append = 1, .queries = 1}}});
      break;
    case Axis::kTree:
      step_of(c).rows[0].tree_parents = {-1, 0, 0, 1};
      break;
    case Axis::kLatent:
      c.shape.head_dim_k = 576;
      c.shape.head_dim_v = 512;
      c.shape.value_in_key = true;
      break;
    case Axis::kValueDim:
      c.shape.head_dim_k = 192;
      c.shape.head_dim_v = 128;
      break;
    case Axis::kCascade:
      c.exec.cascade_slots = 16;
      break;
    case Axis::kSplit:
      c.exec.split_slots = 16;
      break;
    default:
      set_table_entry(axis, c);
  }
  return c;
}

void leave_out(const AxisSet& offered, Case& c) {
  const Case plain = plain_case();
  Shape& s = c.shape;
  Mask& m = c.mask;
  const bool bf16 = s.query_dtype == DType::kBf16 && !offered.has(Axis::kBf16);
  const bool f32 = s.query_dtype == DType::kF32 && !offered.has(Axis::kF32);
  if (bf16 || f32) {
    const DType cache = s.kv_dtype;
    set_dtype(s, DType::kF16);
    if (dtype_bytes(cache) == 1) s.kv_dtype = cache;
  }
  leave_out_dims(offered, s);
  if (!offered.has(Axis::kGroups)) s.query_heads = s.kv_heads;
  if (!offered.has(Axis::kSoftcap)) s.softcap = plain.shape.softcap;
  s.alibi = s.alibi && offered.has(Axis::kAlibi);
  s.sinks = s.sinks && offered.has(Axis::kSinks);
  if (m.causal == Causal::kTopLeft && !offered.has(Axis::kTopLeft)) m.causal = plain.mask.causal;
  if (!offered.has(Axis::kWindowLeft)) m.window_left = plain.mask.window_left;
  if (!offered.has(Axis::kWindowRight)) m.window_right = plain.mask.window_right;
  if (m.encoding != MaskEncoding::kNone && !offered.has(axis_of(m.encoding))) m = plain.mask;
  leave_out_formats(offered, s);
}

}  // namespace kv
