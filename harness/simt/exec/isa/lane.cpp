// Communication between the lanes of a warp: shfl, vote, match, redux, elect. PTX ISA 9.0 sections
// 9.7.9.6 and 9.7.13. The member mask names who takes part; a lane that it names and that is
// elsewhere is waited for, and the value of a lane that does not take part is undefined.
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/isa/lanes.h"

namespace kv::simt::KV_ISA {
namespace {

constexpr u16 kOneMask = 3;  // flags: the mask is a constant, the same in all lanes

KV_INLINE bool masks_differ(const u32* masks, u32 lanes) {
  const u32 first = masks[__builtin_ctz(lanes)];
  u32 different = 0;
  KV_LANES different |= (lanes & kLaneBit[l]) ? masks[l] ^ first : 0;
  return different != 0;
}

/// Tiles of a warp that name themselves: lanes with the same mask act together, apart from others.
template <auto Act>
[[gnu::noinline]] static const Ins* act_in_groups(Warp& w, const Ins* i, const u32* masks) {
  const u32 all = w.exec;
  u32 mask[32], named = 0;  // a result may take the place of the masks
  for (u32 l = 0; l < 32; ++l) {
    mask[l] = masks[l];
    if (all >> l & 1) named |= mask[l];
  }
  if (named & ~all & ~w.dead) {
    if (const Ins* other = await_lanes(w, i, named)) return other;
  }
  for (u32 left = all; left != 0;) {
    const u32 members = mask[__builtin_ctz(left)];
    u32 group = 0;
    for (u32 l = 0; l < 32; ++l) group |= u32((left >> l & 1) && mask[l] == members) << l;
    if (group & ~members) report_member_mask(w, i, members, group);
    set_exec(w, group);
    Act(w, i, members & group);
    left &= ~group;
  }
  set_exec(w, all);
  return resume_after(w, i);
}

/// Waits for the lanes that the member mask, operand `kMask`, names, and calls Act(w, i, here) with
/// those of them that are here.
template <auto Act, int kMask>
KV_STEP with_members(Warp& w, const Ins* i) {
  const u32* masks = slot<u32>(w, i->r[kMask]);
  if (!(i->flags & kOneMask) && masks_differ(masks, w.exec)) [[unlikely]]
    return act_in_groups<Act>(w, i, masks);
  const u32 named = masks[__builtin_ctz(w.exec)];
  if (named & ~w.exec & ~w.dead) [[unlikely]] {
    if (const Ins* other = await_lanes(w, i, named)) return other;
  }
  if (w.exec & ~named) [[unlikely]]
    report_member_mask(w, i, named, w.exec);
  Act(w, i, named & w.exec);
  if (w.tainted != 0) [[unlikely]]
    return resume_after(w, i);
  KV_NEXT(w, i + 1);
}

enum ShuffleMode : u8 { kButterfly, kIndex, kDown, kUp };

template <bool kPredicate>
KV_INLINE void shuffle(Warp& w, const Ins* i, u32 here) {
  constexpr int kFirst = kPredicate ? 2 : 1;
  const u32* a = slot<u32>(w, i->r[kFirst]);
  const u32* b = slot<u32>(w, i->r[kFirst + 1]);
  const u32* c = slot<u32>(w, i->r[kFirst + 2]);
  alignas(64) u32 t[32];
  if (i->mode == kButterfly && (i->flags & 1) && here == ~0u) {
    // The same constant for all lanes and whole-warp segments: a permutation.
    const u32 x = b[0] & 31;
#if defined(__AVX512BW__)
    const Words low = load_words(a), high = load_words(a + 16);
    const Words order = _mm512_xor_si512(lane_numbers(), all_words(x));
    store_words(t, _mm512_permutex2var_epi32(low, order, high));
    store_words(t + 16, _mm512_permutex2var_epi32(high, order, low));
#elif defined(__AVX2__)
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
    return;
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
  if (absent && w.launch->check_undefined) [[unlikely]]
    undefine_lanes(w, i, i->r[0], absent);
}

enum VoteMode : u8 { kAll, kAny, kUniform, kBallot };

template <bool kToRegister>
KV_INLINE void vote(Warp& w, const Ins* i, u32 here) {
  const u32 p = w.predicates[i->r[1]] & here;
  if (kToRegister) {
    u32* d = slot<u32>(w, i->r[0]);
    KV_LANES d[l] = (w.write & kLaneBit[l]) ? p : d[l];
  } else {
    const bool yes = i->mode == kAll ? p == here : i->mode == kAny ? p != 0 : p == here || p == 0;
    set_predicate(w, i->r[0], yes ? ~0u : 0);
  }
}

template <class T, bool kAllSame>
KV_INLINE void match(Warp& w, const Ins* i, u32 here) {
  // match.any: d = a, mask; match.all: d, p = a, mask.
  constexpr int kFirst = kAllSame ? 2 : 1;
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
}

template <class T, auto F>
KV_INLINE void reduce(Warp& w, const Ins* i, u32 here) {
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
}

/// elect.sync: the lowest member leads.
KV_INLINE void elect(Warp& w, const Ins* i, u32 here) {
  const u32 leader = u32(__builtin_ctz(here ? here : 1));
  u32* d = slot<u32>(w, i->r[0]);
  KV_LANES d[l] = (w.write & kLaneBit[l]) ? leader : d[l];
  set_predicate(w, i->r[1], 1u << leader);
}

KV_STEP active_mask(Warp& w, const Ins* i) {
  u32* d = slot<u32>(w, i->r[0]);
  const u32 mask = w.exec;
  KV_LANES d[l] = (w.write & kLaneBit[l]) ? mask : d[l];
  KV_NEXT(w, i + 1);
}

KV_STEP nothing(Warp& w, const Ins* i) { KV_NEXT(w, i + 1); }

/// %clock and the like: warp instructions of the basic blocks that the warp has left behind. Loops
/// that wait for time to pass end, and no result depends on a machine.
template <class T>
KV_STEP clock_now(Warp& w, const Ins* i) {
  T* d = slot<T>(w, i->r[0]);
  const T now = T(w.warp_instructions);
  KV_LANES d[l] = (w.write & kLaneBit[l]) ? now : d[l];
  KV_NEXT(w, i + 1);
}

constexpr auto kMin = [](auto a, auto b) { return a < b ? a : b; };
constexpr auto kMax = [](auto a, auto b) { return a > b ? a : b; };

constexpr FormRow kRows[] = {
    {"~shfl", "2=2222", Taint::kShuffle, with_members<shuffle<false>, 4>},
    {"~shfl.p", "2p=2222", Taint::kShuffle, with_members<shuffle<true>, 5>},
    {"vote.sync.all.pred", "p=p2", Taint::kSideEffect, with_members<vote<false>, 2>, 32, kAll},
    {"vote.sync.any.pred", "p=p2", Taint::kSideEffect, with_members<vote<false>, 2>, 32, kAny},
    {"vote.sync.uni.pred", "p=p2", Taint::kSideEffect, with_members<vote<false>, 2>, 32, kUniform},
    {"vote.sync.ballot.b32", "2=p2", Taint::kSideEffect, with_members<vote<true>, 2>, 32, kBallot},
    {"match.any.sync.b32", "2=22", Taint::kSideEffect, with_members<match<u32, false>, 2>},
    {"match.any.sync.b64", "2=42", Taint::kSideEffect, with_members<match<u64, false>, 2>},
    {"~match.all.b32", "2p=22", Taint::kSideEffect, with_members<match<u32, true>, 3>},
    {"~match.all.b64", "2p=42", Taint::kSideEffect, with_members<match<u64, true>, 3>},
    {"redux.sync.add.{u32,s32}", "2=22", Taint::kSideEffect,
     with_members<reduce<u32, [](u32 a, u32 b) { return a + b; }>, 2>},
    {"redux.sync.min.u32", "2=22", Taint::kSideEffect, with_members<reduce<u32, kMin>, 2>},
    {"redux.sync.max.u32", "2=22", Taint::kSideEffect, with_members<reduce<u32, kMax>, 2>},
    {"redux.sync.min.s32", "2=22", Taint::kSideEffect, with_members<reduce<s32, kMin>, 2>},
    {"redux.sync.max.s32", "2=22", Taint::kSideEffect, with_members<reduce<s32, kMax>, 2>},
    {"redux.sync.and.b32", "2=22", Taint::kSideEffect,
     with_members<reduce<u32, [](u32 a, u32 b) { return a & b; }>, 2>},
    {"redux.sync.or.b32", "2=22", Taint::kSideEffect,
     with_members<reduce<u32, [](u32 a, u32 b) { return a | b; }>, 2>},
    {"redux.sync.xor.b32", "2=22", Taint::kSideEffect,
     with_members<reduce<u32, [](u32 a, u32 b) { return a ^ b; }>, 2>},
    {"~elect", "2p=2", Taint::kSideEffect, with_members<elect, 2>},
    {"activemask.b32", "2=", Taint::kNone, active_mask},
    {"~clock.2", "2=", Taint::kNone, clock_now<u32>},
    {"~clock.4", "4=", Taint::kNone, clock_now<u64>},
    {"~nothing", "", Taint::kNone, nothing},
};

}  // namespace

FormRows lane_forms() { return rows_of(kRows); }

}  // namespace kv::simt::KV_ISA
