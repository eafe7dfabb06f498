// The device's memory as the runtime sees it: allocations, copies, fills, rights, what is
// undefined.
#include <algorithm>
#include <cstring>

#include "harness/simt/exec/device_state.h"

namespace kv::simt {

Result<uint64_t> Device::allocate(uint64_t bytes) {
  State& s = *state_;
  if (bytes == 0) return uint64_t{0};
  if (s.allocations_left != 0 && --s.allocations_left == 0) {
    return bad_input("out of device memory: this allocation was told to fail");
  }
  KV_ASSIGN_OR_RETURN(Extent * extent, s.space.allocate(bytes));
  return extent->base;
}

Result<void> Device::free(uint64_t address) {
  State& s = *state_;
  if (address == 0) return {};
  Extent* const e = s.space.find(address);
  if (!e || e->base != address || s.space.number(*e) == 0) {
    const std::string message = "free of " + hex(address) +
                                ", which no allocation starts at: " + extent_name(s.space, address);
    s.api_finding(message, address);
    return bad_input(message);
  }
  if (!e->live()) {
    const std::string message =
        "double free of " + hex(address) + ": " + extent_name(s.space, address);
    s.api_finding(message, address);
    return bad_input(message);
  }
  return s.space.free(*e);
}

bool Device::is_device_address(uint64_t address) const {
  return address >= layout::kHeapBase && address < layout::kEnd;
}

Result<void> Device::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  State& s = *state_;
  if (bytes == 0) return {};
  Extent *target = nullptr, *source = nullptr;
  if (is_device_address(from)) {
    KV_ASSIGN_OR_RETURN(source, s.whole(from, bytes, "a copy's source"));
  }
  if (is_device_address(to)) {
    KV_ASSIGN_OR_RETURN(target, s.whole(to, bytes, "a copy's destination"));
  }
  if ((source && !s.space.touch(*source, from, bytes)) ||
      (target && !s.space.touch(*target, to, bytes))) {
    return bad_input("the limit of real device memory (config.memory_bytes) is reached");
  }
  if (source) s.track({.what = "a copy", .address = from, .bytes = bytes});
  if (target) s.track({.what = "a copy", .address = to, .bytes = bytes, .write = true});
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  if (!target) return {};
  if (!source || (source->flags & Extent::kDefined)) {
    s.space.set_defined(*target, to, bytes, true);
    return {};
  }
  if (!s.space.defined(*source, from, bytes)) {
    target->flags &= ~uint32_t{Extent::kDefined};
    s.note_undefined_copy({.to = to, .from = from, .bytes = bytes});
  }
  bits::copy(AddressSpace::bits(), AddressSpace::bit(to), AddressSpace::bits(),
             AddressSpace::bit(from), bytes);
  return {};
}

Result<void> Device::fill(uint64_t address, uint8_t value, uint64_t bytes) {
  State& s = *state_;
  if (bytes == 0) return {};
  KV_ASSIGN_OR_RETURN(Extent * extent, s.whole(address, bytes, "a fill"));
  if (!s.space.touch(*extent, address, bytes)) {
    return bad_input("the limit of real device memory (config.memory_bytes) is reached");
  }
  s.track({.what = "a fill", .address = address, .bytes = bytes, .write = true});
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  s.space.set_defined(*extent, address, bytes, true);
  return {};
}

Result<void> Device::set_access(uint64_t address, uint64_t bytes, uint32_t access) {
  if (access != KV_SIMT_ACCESS_NONE && access != KV_SIMT_ACCESS_READ &&
      access != KV_SIMT_ACCESS_READ_WRITE) {
    return bad_input("access is " + std::to_string(access) + "; known: 0, 1, 3");
  }
  if (bytes == 0) return {};
  KV_ASSIGN_OR_RETURN(Extent * extent, state_->whole(address, bytes, "set_access"));
  state_->space.set_access(*extent, address, bytes, access);
  return {};
}

Result<void> Device::set_defined(uint64_t address, uint64_t bytes, bool defined) {
  State& s = *state_;
  if (bytes == 0) return {};
  KV_ASSIGN_OR_RETURN(Extent * extent, s.whole(address, bytes, "set_defined"));
  if (!s.space.touch(*extent, address, bytes)) {
    return bad_input("the limit of real device memory (config.memory_bytes) is reached");
  }
  s.space.set_defined(*extent, address, bytes, defined);
  return {};
}

Result<Device::UndefinedRun> Device::first_undefined(uint64_t address, uint64_t bytes) {
  State& s = *state_;
  if (bytes == 0) return UndefinedRun{};
  KV_ASSIGN_OR_RETURN(Extent * extent, s.whole(address, bytes, "first_undefined"));
  const uint64_t offset = s.space.first(*extent, address, bytes, false);
  if (offset == bytes) return UndefinedRun{};
  return UndefinedRun{offset, s.space.first(*extent, address + offset, bytes - offset, true)};
}

std::string Device::State::origin_of(uint64_t address) {
  const auto copy = std::find_if(undefined_copies.rbegin(), undefined_copies.rend(),
                                 [&](const UndefinedCopy& c) { return address - c.to < c.bytes; });
  if (copy == undefined_copies.rend())
    return "nobody has written it, or what was stored there was undefined";
  const uint64_t from = copy->from + (address - copy->to);
  return "it was copied from " + hex(from) + ", " + extent_name(space, from) +
         ", where nobody had written it";
}

Result<void> Device::report_undefined(uint64_t address, uint64_t bytes, std::string_view what) {
  State& s = *state_;
  KV_ASSIGN_OR_RETURN(const UndefinedRun run, first_undefined(address, bytes));
  if (run.bytes == 0 || !(s.config.checks & KV_SIMT_CHECK_UNDEFINED)) return {};
  const auto& known = s.log.kept();
  const bool explained = std::any_of(known.begin(), known.end(), [](const kv_simt_finding& f) {
    return f.kind == KV_SIMT_KIND_UNDEFINED || f.kind == KV_SIMT_KIND_RACE;
  });
  if (explained) return {};  // the store that brought it here, or the race, says more
  const uint64_t at = address + run.offset;
  kv_simt_finding f = {};
  f.kind = KV_SIMT_KIND_UNDEFINED;
  f.address = at;
  f.access_bytes = uint32_t(std::min<uint64_t>(run.bytes, UINT32_MAX));
  s.name_allocation(&f);
  copy_text(f.message, std::string(what) + ": " + std::to_string(run.bytes) +
                           " undefined bytes at " + hex(at) + " (" + extent_name(s.space, at) +
                           "); " + s.origin_of(at));
  s.log.add(f);
  return {};
}

// --- modules

}  // namespace kv::simt
