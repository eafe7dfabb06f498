// Logic, shifts, moves, selection and predicates. PTX ISA 9.0 sections 9.7.8, 9.7.9 and 9.7.6.
#include "harness/simt/exec/isa/lanes.h"

namespace kv::simt::KV_ISA {
namespace {

KV_INLINE u32 shl32(u32 a, u32 n) { return n > 31 ? 0 : a << n; }
KV_INLINE u32 shr32(u32 a, u32 n) { return n > 31 ? 0 : a >> n; }
KV_INLINE u32 sar32(u32 a, u32 n) { return u32(s32(a) >> (n > 31 ? 31 : n)); }
KV_INLINE u64 shl64(u64 a, u32 n) { return n > 63 ? 0 : a << n; }
KV_INLINE u64 shr64(u64 a, u32 n) { return n > 63 ? 0 : a >> n; }
KV_INLINE u64 sar64(u64 a, u32 n) { return u64(s64(a) >> (n > 63 ? 63 : n)); }
#if defined(__AVX512BW__)
KV_INLINE Words shl_words(Words a, Words n) { return _mm512_sllv_epi32(a, n); }
KV_INLINE Words shr_words(Words a, Words n) { return _mm512_srlv_epi32(a, n); }
KV_INLINE Words sar_words(Words a, Words n) { return _mm512_srav_epi32(a, n); }
#elif defined(__AVX2__)
KV_INLINE Words shl_words(Words a, Words n) { return _mm256_sllv_epi32(a, n); }
KV_INLINE Words shr_words(Words a, Words n) { return _mm256_srlv_epi32(a, n); }
KV_INLINE Words sar_words(Words a, Words n) { return _mm256_srav_epi32(a, n); }
#endif
#ifdef __AVX2__
// Those of vectors treat counts above 31 as PTX does.
constexpr Handler kShl32 = map_words2<shl_words>, kShr32 = map_words2<shr_words>,
                  kSar32 = map_words2<sar_words>;
#else
constexpr Handler kShl32 = binary32<shl32>, kShr32 = binary32<shr32>, kSar32 = binary32<sar32>;
#endif
KV_INLINE u32 shl16(u32 a, u32 n) { return n > 15 ? 0 : u16(a << n); }
KV_INLINE u32 shr16(u32 a, u32 n) { return n > 15 ? 0 : u16(a) >> n; }
KV_INLINE u32 sar16(u32 a, u32 n) { return u16(s32(s16(a)) >> (n > 15 ? 15 : n)); }

/// shf: a is the low word, b the high one.
KV_INLINE u32 funnel_left(u32 a, u32 b, u32 n) {
  return n == 0 ? b : n > 31 ? a : b << n | a >> (32 - n);
}
KV_INLINE u32 funnel_right(u32 a, u32 b, u32 n) {
  return n == 0 ? a : n > 31 ? b : b << (32 - n) | a >> n;
}

KV_STEP lop3(Warp& w, const Ins* i) {
  const u32* a = slot<u32>(w, i->r[1]);
  const u32* b = slot<u32>(w, i->r[2]);
  const u32* c = slot<u32>(w, i->r[3]);
  alignas(64) u32 t[32] = {};
  for (u32 k = 0; k < 8; ++k) {
    if (!(i->mode >> k & 1)) continue;
    const u32 x = k & 4 ? 0 : ~0u, y = k & 2 ? 0 : ~0u, z = k & 1 ? 0 : ~0u;
    KV_LANES t[l] |= (a[l] ^ x) & (b[l] ^ y) & (c[l] ^ z);
  }
  blend(slot<u32>(w, i->r[0]), t, w.write);
  KV_NEXT(w, i + 1);
}

KV_STEP predicate_and(Warp& w, const Ins* i) {
  set_predicate(w, i->r[0], w.predicates[i->r[1]] & w.predicates[i->r[2]]);
  KV_NEXT(w, i + 1);
}
KV_STEP predicate_or(Warp& w, const Ins* i) {
  set_predicate(w, i->r[0], w.predicates[i->r[1]] | w.predicates[i->r[2]]);
  KV_NEXT(w, i + 1);
}
KV_STEP predicate_xor(Warp& w, const Ins* i) {
  set_predicate(w, i->r[0], w.predicates[i->r[1]] ^ w.predicates[i->r[2]]);
  KV_NEXT(w, i + 1);
}
KV_STEP predicate_not(Warp& w, const Ins* i) {
  set_predicate(w, i->r[0], ~w.predicates[i->r[1]]);
  KV_NEXT(w, i + 1);
}
KV_STEP predicate_copy(Warp& w, const Ins* i) {
  set_predicate(w, i->r[0], w.predicates[i->r[1]]);
  KV_NEXT(w, i + 1);
}
/// mov.pred with a constant, in mode.
KV_STEP predicate_constant(Warp& w, const Ins* i) {
  set_predicate(w, i->r[0], i->mode ? ~0u : 0u);
  KV_NEXT(w, i + 1);
}
KV_STEP predicate_to_register(Warp& w, const Ins* i) {
  const u32 p = w.predicates[i->r[1]];
  alignas(64) u32 t[32];
  KV_LANES t[l] = (p & kLaneBit[l]) ? 1 : 0;
  blend(slot<u32>(w, i->r[0]), t, w.write);
  KV_NEXT(w, i + 1);
}

/// Several narrow registers to a wide one.
KV_STEP pack_16_16(Warp& w, const Ins* i) {
  const u32* a = slot<u32>(w, i->r[1]);
  const u32* b = slot<u32>(w, i->r[2]);
  alignas(64) u32 t[32];
  KV_LANES t[l] = (a[l] & 0xffff) | b[l] << 16;
  blend(slot<u32>(w, i->r[0]), t, w.write);
  KV_NEXT(w, i + 1);
}
KV_STEP pack_8x4(Warp& w, const Ins* i) {
  alignas(64) u32 t[32];
  const u32* s[4];
  for (int k = 0; k < 4; ++k) s[k] = slot<u32>(w, i->r[1 + k]);
  KV_LANES t[l] = (s[0][l] & 255) | (s[1][l] & 255) << 8 | (s[2][l] & 255) << 16 | s[3][l] << 24;
  blend(slot<u32>(w, i->r[0]), t, w.write);
  KV_NEXT(w, i + 1);
}
KV_STEP pack_8x2(Warp& w, const Ins* i) {
  const u32* a = slot<u32>(w, i->r[1]);
  const u32* b = slot<u32>(w, i->r[2]);
  alignas(64) u32 t[32];
  KV_LANES t[l] = (a[l] & 255) | (b[l] & 255) << 8;
  blend(slot<u32>(w, i->r[0]), t, w.write);
  KV_NEXT(w, i + 1);
}
KV_STEP pack_32_32(Warp& w, const Ins* i) {
  const u32* a = slot<u32>(w, i->r[1]);
  const u32* b = slot<u32>(w, i->r[2]);
  alignas(64) u64 t[32];
  KV_LANES t[l] = a[l] | u64(b[l]) << 32;
  blend(slot<u64>(w, i->r[0]), t, w.write);
  KV_NEXT(w, i + 1);
}
KV_STEP pack_16x4(Warp& w, const Ins* i) {
  alignas(64) u64 t[32];
  const u32* s[4];
  for (int k = 0; k < 4; ++k) s[k] = slot<u32>(w, i->r[1 + k]);
  KV_LANES t[l] = u64((s[0][l] & 0xffff) | s[1][l] << 16) | u64((s[2][l] & 0xffff) | s[3][l] << 16)
                                                                << 32;
  blend(slot<u64>(w, i->r[0]), t, w.write);
  KV_NEXT(w, i + 1);
}
/// One wide register to several narrow ones; the sources are read before any is written.
template <class Wide, u32 kBits, int kParts, class Narrow>
KV_STEP unpack(Warp& w, const Ins* i) {
  const Wide* a = slot<Wide>(w, i->r[kParts]);
  alignas(64) Narrow t[kParts][32];
  for (int k = 0; k < kParts; ++k) {
    const Wide mask = kBits == 64 ? ~Wide(0) : Wide((u64(1) << (kBits & 63)) - 1);
    KV_LANES t[k][l] = Narrow(a[l] >> (kBits * u32(k)) & mask);
  }
  for (int k = 0; k < kParts; ++k) blend(slot<Narrow>(w, i->r[k]), t[k], w.write);
  KV_NEXT(w, i + 1);
}
/// b128 registers are four slots: the low halves of all lanes, then the high ones.
KV_STEP pack_64_64(Warp& w, const Ins* i) {
  const u64* a = slot<u64>(w, i->r[1]);
  const u64* b = slot<u64>(w, i->r[2]);
  u64* d = slot<u64>(w, i->r[0]);
  blend(d, a, w.write);
  blend(d + 32, b, w.write);
  KV_NEXT(w, i + 1);
}
KV_STEP unpack_64_64(Warp& w, const Ins* i) {
  const u64* a = slot<u64>(w, i->r[2]);
  blend(slot<u64>(w, i->r[0]), a, w.write);
  blend(slot<u64>(w, i->r[1]), a + 32, w.write);
  KV_NEXT(w, i + 1);
}
KV_STEP move_128(Warp& w, const Ins* i) {
  const u64* a = slot<u64>(w, i->r[1]);
  u64* d = slot<u64>(w, i->r[0]);
  blend(d, a, w.write);
  blend(d + 32, a + 32, w.write);
  KV_NEXT(w, i + 1);
}

constexpr auto kSame = [](auto a) { return a; };

constexpr FormRow kRows[] = {
    {"and.b{32,16}", "2=22", Taint::kAnd, binary32<[](u32 a, u32 b) { return a & b; }>},
    {"or.b{32,16}", "2=22", Taint::kOr, binary32<[](u32 a, u32 b) { return a | b; }>},
    {"xor.b{32,16}", "2=22", Taint::kXor, binary32<[](u32 a, u32 b) { return a ^ b; }>},
    {"and.b64", "4=44", Taint::kAnd, binary64<[](u64 a, u64 b) { return a & b; }>},
    {"or.b64", "4=44", Taint::kOr, binary64<[](u64 a, u64 b) { return a | b; }>},
    {"xor.b64", "4=44", Taint::kXor, binary64<[](u64 a, u64 b) { return a ^ b; }>},
    {"not.b32", "2=2", Taint::kCopy, unary32<[](u32 a) { return ~a; }>},
    {"not.b16", "2=2", Taint::kCopy, unary32<[](u32 a) { return u32(u16(~a)); }>},
    {"not.b64", "4=4", Taint::kCopy, unary64<[](u64 a) { return ~a; }>, 64},
    {"cnot.b{32,16}", "2=2", Taint::kAll, unary32<[](u32 a) { return u32(a == 0); }>},
    {"cnot.b64", "4=4", Taint::kAll, unary64<[](u64 a) { return u64(a == 0); }>},
    {"~lop3", "2=222", Taint::kXor, lop3},

    {"shl.b32", "2=22", Taint::kShl, kShl32},
    {"shr.{u32,b32}", "2=22", Taint::kShr, kShr32},
    {"shr.s32", "2=22", Taint::kSar, kSar32},
    {"shl.b64", "4=42", Taint::kShl, map2<shl64, u64, u64, u32>},
    {"shr.{u64,b64}", "4=42", Taint::kShr, map2<shr64, u64, u64, u32>},
    {"shr.s64", "4=42", Taint::kSar, map2<sar64, u64, u64, u32>},
    {"shl.b16", "2=22", Taint::kShl, binary32<shl16>, 16},
    {"shr.{u16,b16}", "2=22", Taint::kShr, binary32<shr16>, 16},
    {"shr.s16", "2=22", Taint::kSar, binary32<sar16>, 16},
    {"shf.l.wrap.b32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return funnel_left(a, b, c & 31); }>},
    {"shf.l.clamp.b32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return funnel_left(a, b, c > 32 ? 32 : c); }>},
    {"shf.r.wrap.b32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return funnel_right(a, b, c & 31); }>},
    {"shf.r.clamp.b32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return funnel_right(a, b, c > 32 ? 32 : c); }>},

    {"mov.{b32,u32,s32,f32,b16,u16,s16,f16,bf16,f16x2,bf16x2}", "2=2", Taint::kCopy,
     unary32<kSame>},
    {"mov.{b64,u64,s64,f64}", "4=4", Taint::kCopy, unary64<kSame>, 64},
    {"mov.b128", "8=8", Taint::kAll, move_128},
    {"mov.pred", "p=p", Taint::kPredicateOr, predicate_copy},
    {"~mov.pred.constant", "p=", Taint::kNone, predicate_constant},
    {"and.pred", "p=pp", Taint::kPredicateAnd, predicate_and},
    {"or.pred", "p=pp", Taint::kPredicateOr, predicate_or},
    {"xor.pred", "p=pp", Taint::kAll, predicate_xor},
    {"not.pred", "p=p", Taint::kAll, predicate_not},
    {"~register.pred", "2=p", Taint::kAll, predicate_to_register},

    {"~pack.32.16.2", "2=22", Taint::kPack, pack_16_16, 16},
    {"~pack.32.8.4", "2=2222", Taint::kPack, pack_8x4, 8},
    {"~pack.16.8.2", "2=22", Taint::kPack, pack_8x2, 8},
    {"~pack.64.32.2", "4=22", Taint::kPack, pack_32_32, 32},
    {"~pack.64.16.4", "4=2222", Taint::kPack, pack_16x4, 16},
    {"~pack.128.64.2", "8=44", Taint::kAll, pack_64_64},
    {"~unpack.32.16.2", "22=2", Taint::kUnpack, unpack<u32, 16, 2, u32>, 16},
    {"~unpack.32.8.4", "2222=2", Taint::kUnpack, unpack<u32, 8, 4, u32>, 8},
    {"~unpack.16.8.2", "22=2", Taint::kUnpack, unpack<u32, 8, 2, u32>, 8},
    {"~unpack.64.32.2", "22=4", Taint::kUnpack, unpack<u64, 32, 2, u32>, 32},
    {"~unpack.64.16.4", "2222=4", Taint::kUnpack, unpack<u64, 16, 4, u32>, 16},
    {"~unpack.128.64.2", "44=8", Taint::kAll, unpack_64_64},

    {"selp.{b32,u32,s32,f32,b16,u16,s16,f16,bf16}", "2=22p", Taint::kSelect, select<u32>},
    {"selp.{b64,u64,s64,f64}", "4=44p", Taint::kSelect, select<u64>},
    {"slct.{b32,u32,s32,f32}.s32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return s32(c) >= 0 ? a : b; }>},
    {"slct.{b32,u32,s32,f32}.f32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return float_of(c) >= 0 ? a : b; }>},
    {"slct.{b16,u16,s16}.s32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return s32(c) >= 0 ? a : b; }>},
    {"slct.ftz.{b32,u32,s32,f32}.f32", "2=222", Taint::kAll,
     ternary32<[](u32 a, u32 b, u32 c) { return float_of(flush(c)) >= 0 ? a : b; }>},
    {"slct.{b64,u64,s64,f64}.s32", "4=442", Taint::kAll,
     map3<[](u64 a, u64 b, u32 c) { return s32(c) >= 0 ? a : b; }, u64, u64, u64, u32>},
    {"copysign.f32", "2=22", Taint::kAll,
     binary32<[](u32 a, u32 b) { return (a & 0x80000000) | (b & 0x7fffffff); }>},
    {"copysign.f64", "4=44", Taint::kAll,
     binary64<[](u64 a, u64 b) { return (a & 0x8000000000000000) | (b & 0x7fffffffffffffff); }>},
};

}  // namespace

FormRows logic_forms() { return rows_of(kRows); }

}  // namespace kv::simt::KV_ISA
