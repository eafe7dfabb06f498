// Writes random attention cases, our double tier's O and its own error for comparison with another
// implementation (sdpa_compare).
//   sdpa_cases FILE [COUNT]        default: 1000 cases
// Layout, little endian, for each case: int32 kv_heads, group, rows, slots, dim_k, dim_v; float64
// scale; float64 query [kv_heads * group][rows][dim_k], key [kv_heads][slots][dim_k], value
// [kv_heads][slots][dim_v]; uint8 visible [rows][slots]; float64 O and E_ref, as the query by
// dim_v.
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "reference/attention.h"
#include "reference/soundness/draw.h"
#include "reference/test_head.h"

namespace kv::reference {
namespace {

struct PeerCase {
  int32_t kv_heads = 1, group = 1, rows = 1, slots = 1, dim_k = 64, dim_v = 64;
  float scale = 1;
  std::vector<uint8_t> visible;
};

PeerCase draw_case(Draw& draw) {
  PeerCase c;
  c.kv_heads = 1 + static_cast<int32_t>(draw.below(3));
  c.group = draw.of({1, 1, 2, 4});
  c.rows = 1 + static_cast<int32_t>(draw.below(9));
  c.slots = c.rows + static_cast<int32_t>(draw.below(150));
  c.dim_k = draw.of({16, 64, 80, 128});
  c.dim_v = draw.of({16, 64, 96});
  c.scale = draw.of({0.125f, 1.0f, 0.088388346f, 0.01f, -0.25f});
  const uint64_t kind = draw.below(3);
  for (int32_t r = 0; r < c.rows; ++r) {
    for (int32_t s = 0; s < c.slots; ++s) {
      const bool causal = s <= c.slots - c.rows + r, random = draw.one_in(3) || s == r;
      c.visible.push_back(kind == 0 || (kind == 1 ? causal : random));
    }
  }
  return c;
}

void write_doubles(std::ofstream& out, const double* values, size_t count) {
  out.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(8 * count));
}

// One K/V head and the query heads that share it, stacked as rows.
TestHead draw_head(const PeerCase& c, Draw& draw) {
  const auto rows = static_cast<size_t>(c.rows), slots = static_cast<size_t>(c.slots);
  TestHead head({.rows = static_cast<uint32_t>(c.rows * c.group),
                 .slots = static_cast<uint32_t>(c.slots),
                 .dim_k = static_cast<uint32_t>(c.dim_k),
                 .dim_v = static_cast<uint32_t>(c.dim_v),
                 .dtype = draw.of({DType::kF16, DType::kBf16, DType::kF32}),
                 .scale = c.scale,
                 .seed = draw.below(uint64_t{1} << 60),
                 .query_size = draw.of({1.0, 1.0, 8.0})});
  for (size_t r = 0; r < rows * static_cast<size_t>(c.group); ++r) {
    const auto first = c.visible.begin() + static_cast<ptrdiff_t>(r % rows * slots);
    head.visible[r].assign(first, first + static_cast<ptrdiff_t>(slots));
  }
  return head;
}

void write_case(std::ofstream& out, Draw& draw) {
  const PeerCase c = draw_case(draw);
  const int32_t sizes[] = {c.kv_heads, c.group, c.rows, c.slots, c.dim_k, c.dim_v};
  out.write(reinterpret_cast<const char*>(sizes), sizeof sizes);
  const double scale = c.scale;
  write_doubles(out, &scale, 1);
  std::vector<TestHead> heads;
  for (int32_t h = 0; h < c.kv_heads; ++h) heads.push_back(draw_head(c, draw));
  for (const TestHead& h : heads) write_doubles(out, h.query.data(), h.query.size());
  for (const TestHead& h : heads) write_doubles(out, h.key.data(), h.key.size());
  for (const TestHead& h : heads) write_doubles(out, h.value.data(), h.value.size());
  out.write(reinterpret_cast<const char*>(c.visible.data()),
            static_cast<std::streamsize>(c.visible.size()));
  HeadEstimator estimator;
  for (const bool error : {false, true}) {
    for (TestHead& h : heads) {
      for (const RowEstimate& row : estimator.run(h.block(), resolve_profile({})).rows) {
        write_doubles(out, error ? row.own_error : row.output, static_cast<size_t>(c.dim_v));
      }
    }
  }
}

}  // namespace
}  // namespace kv::reference

int main(int argc, char** argv) {
  const long count = argc > 2 ? std::atol(argv[2]) : 1000;
  if (argc < 2 || argc > 3 || count < 1) {
    std::fprintf(stderr, "usage: sdpa_cases FILE [COUNT]\n");
    return 2;
  }
  std::ofstream out(argv[1], std::ios::binary);
  kv::reference::Draw draw(2026);
  for (long i = 0; i < count; ++i) kv::reference::write_case(out, draw);
  if (out.flush()) return 0;
  std::fprintf(stderr, "sdpa_cases: could not write %s\n", argv[1]);
  return 3;
}
