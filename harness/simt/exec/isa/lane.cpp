// Communication between the lanes of a warp: shfl, vote, match, redux, elect. PTX ISA 9.0 sections
// 9.7.9.6 and 9.7.13. The member mask names who takes part; a lane that it names and that is
// elsewhere is waited for, and the value of a lane that does not take part is undefined.
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/isa/lanes.h"

namespace kv::simt::KV_ISA {
namespace {

/// The member mask, in the last operand. Null in *other: everybody is here.
KV_INLINE u32 members(Warp& w, const Ins* i, u16 operand, const Ins** other) {
  const u32 named = slot<u32>(w, i->r[operand])[__builtin_ctz(w.exec)];
  *other = nullptr;
  if (named & ~w.exec & ~w.dead) [[unlikely]]
    *other = await_lanes(w, i, named);
  if (!*other && (w.exec & ~named)) [[unlikely]]
    report_member_mask(w, i, named, w.exec);
  return named & w.exec;
}

enum ShuffleMode : u8 { kButterfly, kIndex, kDown, kUp };

template <bool kPredicate>
KV_STEP shuffle(Warp& w, const Ins* i) {
  constexpr int kFirst = kPredicate ? 2 : 1;
  const Ins* other;
  const u32 here = members(w, i, kFirst + 3, &other);
  if (other) return other;
  const u32* a = slot<u32>(w, i->r[kFirst]);
  const u32* b = slot<u32>(w, i->r[kFirst + 1]);
  const u32* c = slot<u32>(w, i->r[kFirst + 2]);
  alignas(64) u32 t[32];
  if (i->mode == kButterfly && (i->flags & 1) && here == ~0u) {
    // The same constant for all lanes and whole-warp segments: a permutation.
    const u32 x = b[0] & 31;
#ifdef __AVX2__
    const __m256i order =
        _mm256_xor_si256(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(int(x & 7)));
    for (u32 k = 0; k < 32; k += 8) {
      const __m256i v = _mm256_load_si256(reinterpret_cast<const __m256i*>(a + (k ^ (x & 24))));
      _mm256_store_si256(reinterpret_cast<__m256i*>(t + k), _mm256_permutevar8x32_epi32(v, order));
    }
#else
    KV_LANES t[l] = a[u32(l) ^ x];
#endif
    blend(slot<u32>(w, i->r[0]), t, w.write);
    if (kPredicate) set_predicate(w, i->r[1], ~0u);
    KV_NEXT(w, i + 1);
  }
  u32 inside_mask = 0, absent = 0;
  for (u32 l = 0; l < 32; ++l) {
    const u32 segment = c[l] >> 8 & 31, clamp = c[l] & 31, by = b[l] & 31;
    const u32 high = (l & segment) | (clamp & ~segment), low = l & segment;
    int from;
    bool inside;
    switch (i->mode) {
      case kButterfly:
        from = int(l ^ by), inside = from <= int(high);
        break;
      case kIndex:
        from = int(low | (by & ~segment)), inside = from <= int(high);
        break;
      case kDown:
        from = int(l + by), inside = from <= int(high);
        break;
      default:
        from = int(l) - int(by), inside = from >= int(high);
        break;
    }
    const u32 source = inside ? u32(from) & 31 : l;
    t[l] = a[source];
    inside_mask |= u32(inside) << l;
    if ((w.exec >> l & 1) && !(here >> source & 1)) absent |= 1u << l;
  }
  blend(slot<u32>(w, i->r[0]), t, w.write);
  if (kPredicate) set_predicate(w, i->r[1], inside_mask);
  if (absent && w.launch->check_undefined) [[unlikely]] {
    undefine_lanes(w, i, i->r[0], absent);
    return resume_after(w, i);
  }
  KV_NEXT(w, i + 1);
}

enum VoteMode : u8 { kAll, kAny, kUniform, kBallot };

template <bool kToRegister>
KV_STEP vote(Warp& w, const Ins* i) {
  const Ins* other;
  const u32 here = members(w, i, 2, &other);
  if (other) return other;
  const u32 p = w.predicates[i->r[1]] & here;
  if (kToRegister) {
    u32* d = slot<u32>(w, i->r[0]);
    KV_LANES d[l] = (w.write & kLaneBit[l]) ? p : d[l];
  } else {
    const bool yes = i->mode == kAll ? p == here : i->mode == kAny ? p != 0 : p == here || p == 0;
    set_predicate(w, i->r[0], yes ? ~0u : 0);
  }
  KV_NEXT(w, i + 1);
}

template <class T, bool kAllSame>
KV_STEP match(Warp& w, const Ins* i) {
  // match.any: d = a, mask; match.all: d, p = a, mask.
  constexpr int kFirst = kAllSame ? 2 : 1;
  const Ins* other;
  const u32 here = members(w, i, kFirst + 1, &other);
  if (other) return other;
  const T* a = slot<T>(w, i->r[kFirst]);
  alignas(64) u32 t[32];
  u32 all = ~0u;
  for (int l = 0; l < 32; ++l) {
    u32 same = 0;
    for (int k = 0; k < 32; ++k) same |= u32((here >> k & 1) && a[k] == a[l]) << k;
    t[l] = same;
    if (here >> l & 1) all &= u32(same == here) ? ~0u : 0;
  }
  if (kAllSame) {
    KV_LANES t[l] = all ? here : 0;
    set_predicate(w, i->r[1], all);
  }
  blend(slot<u32>(w, i->r[0]), t, w.write);
  KV_NEXT(w, i + 1);
}

template <class T, auto F>
KV_STEP reduce(Warp& w, const Ins* i) {
  const Ins* other;
  const u32 here = members(w, i, 2, &other);
  if (other) return other;
  const T* a = slot<T>(w, i->r[1]);
  T total = 0;
  bool first = true;
  for (u32 m = here; m; m &= m - 1) {
    const T x = a[__builtin_ctz(m)];
    total = first ? x : F(total, x);
    first = false;
  }
  T* d = slot<T>(w, i->r[0]);
  KV_LANES d[l] = (w.write & kLaneBit[l]) ? total : d[l];
  KV_NEXT(w, i + 1);
}

/// elect.sync: the lowest member leads.
KV_STEP elect(Warp& w, const Ins* i) {
  const Ins* other;
  const u32 here = members(w, i, 2, &other);
  if (other) return other;
  const u32 leader = u32(__builtin_ctz(here ? here : 1));
  u32* d = slot<u32>(w, i->r[0]);
  KV_LANES d[l] = (w.write & kLaneBit[l]) ? leader : d[l];
  set_predicate(w, i->r[1], 1u << leader);
  KV_NEXT(w, i + 1);
}

KV_STEP active_mask(Warp& w, const Ins* i) {
  u32* d = slot<u32>(w, i->r[0]);
  const u32 mask = w.exec;
  KV_LANES d[l] = (w.write & kLaneBit[l]) ? mask : d[l];
  KV_NEXT(w, i + 1);
}

KV_STEP nothing(Warp& w, const Ins* i) { KV_NEXT(w, i + 1); }

constexpr auto kMin = [](auto a, auto b) { return a < b ? a : b; };
constexpr auto kMax = [](auto a, auto b) { return a > b ? a : b; };

constexpr FormRow kRows[] = {
    {"~shfl", "2=2222", Taint::kShuffle, shuffle<false>},
    {"~shfl.p", "2p=2222", Taint::kShuffle, shuffle<true>},
    {"vote.sync.all.pred", "p=p2", Taint::kSideEffect, vote<false>, 32, kAll},
    {"vote.sync.any.pred", "p=p2", Taint::kSideEffect, vote<false>, 32, kAny},
    {"vote.sync.uni.pred", "p=p2", Taint::kSideEffect, vote<false>, 32, kUniform},
    {"vote.sync.ballot.b32", "2=p2", Taint::kSideEffect, vote<true>, 32, kBallot},
    {"match.any.sync.b32", "2=22", Taint::kSideEffect, match<u32, false>},
    {"match.any.sync.b64", "2=42", Taint::kSideEffect, match<u64, false>},
    {"~match.all.b32", "2p=22", Taint::kSideEffect, match<u32, true>},
    {"~match.all.b64", "2p=42", Taint::kSideEffect, match<u64, true>},
    {"redux.sync.add.{u32,s32}", "2=22", Taint::kSideEffect,
     reduce<u32, [](u32 a, u32 b) { return a + b; }>},
    {"redux.sync.min.u32", "2=22", Taint::kSideEffect, reduce<u32, kMin>},
    {"redux.sync.max.u32", "2=22", Taint::kSideEffect, reduce<u32, kMax>},
    {"redux.sync.min.s32", "2=22", Taint::kSideEffect, reduce<s32, kMin>},
    {"redux.sync.max.s32", "2=22", Taint::kSideEffect, reduce<s32, kMax>},
    {"redux.sync.and.b32", "2=22", Taint::kSideEffect,
     reduce<u32, [](u32 a, u32 b) { return a & b; }>},
    {"redux.sync.or.b32", "2=22", Taint::kSideEffect,
     reduce<u32, [](u32 a, u32 b) { return a | b; }>},
    {"redux.sync.xor.b32", "2=22", Taint::kSideEffect,
     reduce<u32, [](u32 a, u32 b) { return a ^ b; }>},
    {"~elect", "2p=2", Taint::kSideEffect, elect},
    {"activemask.b32", "2=", Taint::kNone, active_mask},
    {"~nothing", "", Taint::kNone, nothing},
};

}  // namespace

FormRows lane_forms() { return rows_of(kRows); }

}  // namespace kv::simt::KV_ISA
