// Where one lane's access leads, what its bytes are and which of them are defined.
#include <algorithm>
#include <cstring>
#include <optional>

#include "harness/simt/check/global_race.h"
#include "harness/simt/exec/access.h"
#include "harness/simt/exec/atomic.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/report.h"
#include "harness/simt/exec/taint.h"
#include "harness/simt/memory/bits.h"

namespace kv::simt {
namespace {

using ptx::Space;

std::optional<Target> fault(const Access& a, uint32_t kind, Space space, uint64_t address,
                            const std::string& why) {
  a.w.stop = kind == KV_SIMT_KIND_MISALIGNED ? Stop::kMisaligned : Stop::kFault;
  if (fresh(a.w, a.i, kind)) {
    file(a.w, a.i,
         {.kind = kind,
          .lane = a.lane,
          .address = address,
          .bytes = a.bytes,
          .space = space,
          .message = thread_name(a.w, a.lane) + " " + verb(a) + " " + std::to_string(a.bytes) +
                     " bytes at " + why});
  }
  return std::nullopt;
}

/// Bytes of the access that must be there: a load may be wider than what is used of it.
void used_range(const Access& a, uint32_t* first, uint32_t* count) {
  const uint32_t mask = a.bytes >= 32 ? a.used : a.used & ((1u << a.bytes) - 1);
  *first = mask ? uint32_t(__builtin_ctz(mask)) : 0;
  *count = mask ? 32 - uint32_t(__builtin_clz(mask)) - *first : a.bytes;
}

void check_rights(const Access& a, const Target& t) {
  if (!(t.extent->flags & (Extent::kNoRead | Extent::kNoWrite | Extent::kConstant))) return;
  if (!(a.w.launch->checks & KV_SIMT_CHECK_MEMORY)) return;
  const uint32_t rights = a.w.launch->cold->space->access(*t.extent, t.address, a.bytes);
  const uint32_t wanted = (a.read ? KV_SIMT_ACCESS_READ : 0) | (a.write ? 2u : 0);
  if ((rights & wanted) == wanted || !fresh(a.w, a.i, KV_SIMT_KIND_ACCESS_RIGHTS)) return;
  file(a.w, a.i,
       {.kind = KV_SIMT_KIND_ACCESS_RIGHTS,
        .lane = a.lane,
        .address = t.address,
        .bytes = a.bytes,
        .space = Space::kGlobal,
        .message = thread_name(a.w, a.lane) + " " + verb(a) + " " + std::to_string(a.bytes) +
                   " bytes at " + hex(t.address) + ", " +
                   extent_name(*a.w.launch->cold->space, t.address) +
                   (rights == 0 ? ", declared off limits" : ", declared read-only")});
}

std::optional<Target> global_target(const Access& a, uint64_t address) {
  AddressSpace& space = *a.w.launch->cold->space;
  uint32_t first = 0, count = 0;
  used_range(a, &first, &count);
  Extent* e = space.find(address + first);
  if (!e || !e->holds(address + first, count)) {
    const std::string near = address < 4096 ? "the null page" : extent_name(space, address);
    return fault(a, KV_SIMT_KIND_OUT_OF_BOUNDS, Space::kGlobal, address,
                 hex(address) + ", outside every allocation: " + near);
  }
  if (!e->live()) {
    return fault(a, KV_SIMT_KIND_USE_AFTER_FREE, Space::kGlobal, address,
                 hex(address) + ", " + extent_name(space, address));
  }
  if (!space.touch(*e, address + first, count)) {
    return fault(
        a, KV_SIMT_KIND_API, Space::kGlobal, address,
        hex(address) + ": the limit of real device memory (config.memory_bytes) is reached");
  }
  Target t{Space::kGlobal, address, reinterpret_cast<uint8_t*>(address), e};
  check_rights(a, t);
  if (a.write && (e->flags & Extent::kConstant)) {
    return fault(a, KV_SIMT_KIND_ACCESS_RIGHTS, Space::kConst, address, "a constant variable");
  }
  return t;
}

}  // namespace

std::optional<Target> resolve(const Access& a, uint64_t address) {
  Space space = a.space;
  if (space == Space::kConst) space = Space::kGlobal;
  if (space == Space::kGeneric) {
    const auto in = [&](uint64_t window) { return address - window < layout::kWindowBytes; };
    space = Space::kGlobal;
    if (in(layout::kSharedWindow)) space = Space::kShared, address -= layout::kSharedWindow;
    if (in(layout::kLocalWindow)) space = Space::kLocal, address -= layout::kLocalWindow;
    if (in(layout::kParamWindow)) space = Space::kParam, address -= layout::kParamWindow;
  } else if (space != Space::kGlobal &&
             address - layout::kSharedWindow < 3 * layout::kWindowBytes * 256) {
    return fault(a, KV_SIMT_KIND_OUT_OF_BOUNDS, space, address,
                 hex(address) + ": a generic address where the instruction wants an offset");
  }
  if (address & (a.bytes - 1)) {
    return fault(a, KV_SIMT_KIND_MISALIGNED, space, address,
                 hex(address) + ", which is not a multiple of " + std::to_string(a.bytes));
  }
  if (space == Space::kGlobal) return global_target(a, address);
  if (space == Space::kParam && address >= layout::kParamFrame) {
    space = Space::kLocal;
    address = address - layout::kParamFrame + program_of(a.w).local_bytes;
  }
  const uint64_t limit = space == Space::kShared  ? a.w.block->shared_bytes
                         : space == Space::kLocal ? uint64_t{a.w.local_words} * 4
                                                  : a.w.launch->parameter_bytes;
  const char* const name = space == Space::kShared  ? "shared"
                           : space == Space::kLocal ? "local"
                                                    : "parameter";
  if (address > limit || limit - address < a.bytes) {
    return fault(a, KV_SIMT_KIND_OUT_OF_BOUNDS, space, address,
                 std::string(name) + " offset " + std::to_string(int64_t(address)) +
                     ", outside its " + std::to_string(limit) + " bytes");
  }
  if (space == Space::kParam && a.write) {
    return fault(a, KV_SIMT_KIND_ACCESS_RIGHTS, space, address, "a kernel parameter");
  }
  Target t{space, address, nullptr, nullptr};
  if (space == Space::kShared) t.data = a.w.block->shared + address;
  if (space == Space::kParam) t.data = const_cast<uint8_t*>(a.w.launch->parameters) + address;
  return t;
}

namespace {

// --- bytes and their definedness

template <class F>
void for_local_words(const Access& a, const Target& t, F f) {
  for (uint32_t done = 0; done < a.bytes;) {
    const uint64_t at = t.address + done;
    const auto within = uint32_t(at & 3);
    const uint32_t part = std::min(4 - within, a.bytes - done);
    const uint64_t word = at / 4 * 32 + a.lane;
    f(done, reinterpret_cast<uint8_t*>(a.w.local + word) + within, word * 4 + within, part);
    done += part;
  }
}

}  // namespace

void read_bytes(const Access& a, const Target& t, uint8_t* out) {
  if (t.space == Space::kLocal) {
    return for_local_words(a, t, [&](uint32_t at, uint8_t* data, uint64_t, uint32_t count) {
      std::memcpy(out + at, data, count);
    });
  }
  if (t.extent && !t.extent->holds(t.address, a.bytes)) {  // partly unused, see used_range
    for (uint32_t k = 0; k < a.bytes; ++k) {
      out[k] = t.extent->holds(t.address + k, 1) ? t.data[k] : layout::kPoison;
    }
    return;
  }
  std::memcpy(out, t.data, a.bytes);
}

void write_bytes(const Access& a, const Target& t, const uint8_t* from) {
  if (t.space == Space::kLocal) {
    return for_local_words(a, t, [&](uint32_t at, uint8_t* data, uint64_t, uint32_t count) {
      std::memcpy(data, from + at, count);
    });
  }
  std::memcpy(t.data, from, a.bytes);
}

/// Undefined bytes of the access, one bit each.
uint32_t undefined_bytes(const Access& a, const Target& t) {
  uint32_t defined = ~0u;
  if (t.space == Space::kLocal) {
    defined = 0;
    for_local_words(a, t, [&](uint32_t at, uint8_t*, uint64_t bit, uint32_t count) {
      defined |= uint32_t(bits::get(a.w.local_bits, bit, count)) << at;
    });
  } else if (t.space == Space::kShared) {
    defined = uint32_t(bits::get(a.w.block->shared_bits, t.address, a.bytes));
  } else if (t.space == Space::kGlobal && !(t.extent->flags & Extent::kDefined)) {
    defined = uint32_t(bits::get(AddressSpace::bits(), AddressSpace::bit(t.address), a.bytes));
  }
  return ~defined & low_mask(a.bytes) & a.used;
}

void set_undefined_bytes(const Access& a, const Target& t, uint32_t undefined) {
  if (t.space == Space::kLocal) {
    for_local_words(a, t, [&](uint32_t at, uint8_t*, uint64_t bit, uint32_t count) {
      bits::put(a.w.local_bits, bit, count, ~(undefined >> at));
    });
  } else if (t.space == Space::kShared) {
    bits::put(a.w.block->shared_bits, t.address, a.bytes, ~uint64_t{undefined});
  } else if (t.space == Space::kGlobal) {
    if (undefined) t.extent->flags &= ~uint32_t{Extent::kDefined};
    bits::put(AddressSpace::bits(), AddressSpace::bit(t.address), a.bytes, ~uint64_t{undefined});
  }
}

}  // namespace kv::simt
