// ldmatrix and stmatrix row by row. Row r of matrix k is addressed by lane 8 k + r and spread over
// lanes 4 r .. 4 r + 3, 4 bytes each; transposed, element (r, c) goes to where (c, r) would.
#include <cstring>

#include "harness/simt/exec/access.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/memory/layout.h"

namespace kv::simt {
namespace {

struct Matrix {
  uint16_t value[8][8] = {};
  uint16_t undefined[8][8] = {};
};

void transpose(Matrix& m) {
  Matrix t;
  for (int r = 0; r < 8; ++r) {
    for (int c = 0; c < 8; ++c) {
      t.value[c][r] = m.value[r][c];
      t.undefined[c][r] = m.undefined[r][c];
    }
  }
  m = t;
}

uint64_t row_address(Warp& w, const Ins* i, uint32_t operand, uint32_t lane) {
  switch (AddressMode(i->mode)) {
    case AddressMode::kConstant:
      return uint64_t(i->imm);
    case AddressMode::kRegister32:
      return uint32_t(slot<uint32_t>(w, i->r[operand])[lane] + uint32_t(i->imm));
    default:
      return slot<uint64_t>(w, i->r[operand])[lane] + uint64_t(i->imm);
  }
}

bool load(Warp& w, const Ins* i, Access& a, const uint64_t* address) {
  for (uint32_t k = 0; k < i->count; ++k) {
    Matrix m;
    Origin origin{meta_of(w, i).source, 0, uint8_t(ptx::Space::kShared), nullptr};
    for (uint32_t r = 0; r < 8; ++r) {
      a.lane = 8 * k + r;
      const std::optional<Target> t = resolve(a, address[a.lane]);
      if (!t) return false;
      read_bytes(a, *t, reinterpret_cast<uint8_t*>(m.value[r]));
      check_race(a, *t, nullptr);
      uint32_t lost = w.launch->check_undefined ? undefined_bytes(a, *t) : 0;
      if (lost && pending_copy(a, *t)) lost = 0;
      if (lost) origin.address = t->address;
      for (uint32_t c = 0; c < 8; ++c) m.undefined[r][c] = uint16_t(spread(lost >> (2 * c) & 3, 2));
    }
    if (i->flags & 1) transpose(m);
    uint32_t* d = slot<uint32_t>(w, i->r[k]);
    for (uint32_t l = 0; l < 32; ++l) {
      const uint32_t r = l / 4, c = 2 * (l & 3);
      const uint32_t value = m.value[r][c] | uint32_t(m.value[r][c + 1]) << 16;
      const uint32_t lost = m.undefined[r][c] | uint32_t(m.undefined[r][c + 1]) << 16;
      if (!(w.exec >> l & 1)) continue;
      d[l] = value;
      set_undefined(w, i->r[k], false, l, lost, origin);
    }
  }
  return true;
}

bool store(Warp& w, const Ins* i, Access& a, const uint64_t* address) {
  for (uint32_t k = 0; k < i->count; ++k) {
    Matrix m;
    for (uint32_t l = 0; l < 32; ++l) {
      const uint32_t value = slot<uint32_t>(w, i->r[1 + k])[l];
      const auto lost = uint32_t(undefined_bits(w, i->r[1 + k], false, l));
      for (uint32_t h = 0; h < 2; ++h) {
        m.value[l / 4][2 * (l & 3) + h] = uint16_t(value >> (16 * h));
        m.undefined[l / 4][2 * (l & 3) + h] = uint16_t(lost >> (16 * h));
      }
    }
    if (i->flags & 1) transpose(m);
    for (uint32_t r = 0; r < 8; ++r) {
      a.lane = 8 * k + r;
      const std::optional<Target> t = resolve(a, address[a.lane]);
      if (!t) return false;
      const auto* row = reinterpret_cast<const uint8_t*>(m.value[r]);
      check_race(a, *t, row);
      write_bytes(a, *t, row);
      uint32_t lost = 0;
      for (uint32_t c = 0; c < 8; ++c) {
        if (m.undefined[r][c] & 0xff) lost |= 1u << (2 * c);
        if (m.undefined[r][c] >> 8) lost |= 2u << (2 * c);
      }
      set_undefined_bytes(a, *t, w.launch->check_undefined ? lost : 0);
    }
  }
  return true;
}

}  // namespace

const Ins* slow_matrix(Warp& w, const Ins* i) {
  const bool stores = i->extra == uint16_t(AccessKind::kStore);
  Access a{w, i, ptx::Space(i->space)};
  a.bytes = 16;
  a.read = !stores;
  a.write = stores;
  const uint32_t operand = meta_of(w, i).destinations;
  uint64_t address[32];
  for (uint32_t l = 0; l < 8u * i->count; ++l) {
    // A lane that has exited cannot give an address: its row is the first live lane's.
    const uint32_t from = w.exec >> l & 1 ? l : uint32_t(__builtin_ctz(w.exec));
    address[l] = row_address(w, i, operand, from);
  }
  const bool ok = stores ? store(w, i, a, address) : load(w, i, a, address);
  return ok ? resume_after(w, i) : nullptr;
}

}  // namespace kv::simt
