// mma, ldmatrix, stmatrix, movmatrix: PTX ISA 9.0 sections 9.7.14.5 and 9.7.14.5.15 to .17.
#include <cmath>

#include "harness/simt/exec/semantics_test/floating.h"
#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/integer.h"

namespace kv::simt::semantics {
namespace {

using Forms = std::vector<Form>;

/// An element type of A or B: how many bits, what they mean, and the operand values tried.
struct Element {
  const char* name;
  int bits;
  const Format* format;  // null for integers
  Operand operand, special;
};
constexpr Element kElements[] = {
    {"f16", 16, &kF16, "m_f16", "x_f16"},    {"bf16", 16, &kBf16, "m_bf16", "x_bf16"},
    {"tf32", 32, &kF32, "m_tf32", "x_tf32"}, {"e4m3", 8, &kE4m3, "m_e4m3", "x_e4m3"},
    {"e5m2", 8, &kE5m2, "m_e5m2", "x_e5m2"}, {"s8", 8, nullptr, "b32", "b32"},
    {"u8", 8, nullptr, "b32", "b32"},        {"s4", 4, nullptr, "b32", "b32"},
    {"u4", 4, nullptr, "b32", "b32"},        {"f64", 64, &kF64, "m_f64", "x_f64"},
};
const Element& element(std::string_view name) {
  for (const Element& e : kElements) {
    if (e.name == name) return e;
  }
  return kElements[0];
}

struct Shape {
  int m, n, k;
  std::string text() const {
    return "m" + std::to_string(m) + "n" + std::to_string(n) + "k" + std::to_string(k);
  }
};

/// Registers of each operand and the place of their elements: groups of four lanes hold a row of A
/// and a column of B; a register holds `per` neighbours in k; further registers of A go down 8 rows
/// first, then right, those of B down. Sections 9.7.14.5.1 to 9.7.14.5.10.
struct Layout {
  Shape shape;
  int per;    // elements in a register of A and B
  int c_per;  // elements in a register of C and D: 1, or 2 halves
  int a_count() const { return shape.m / 8 * (shape.k / (4 * per)); }
  int b_count() const { return shape.k / (4 * per); }
  int c_count() const { return shape.m / 8 * 2 / c_per; }
  int sources() const { return a_count() + b_count() + c_count(); }
};

/// The element at (row, k) of A in the rows of sources.
uint64_t a_bits(const Layout& layout, int bits, const uint64_t* s, int row, int k) {
  const int rows = layout.shape.m / 8, chunk = 4 * layout.per;
  const int lane = row % 8 * 4 + k % chunk / layout.per, reg = k / chunk * rows + row / 8;
  const uint64_t word = s[lane * layout.sources() + reg];
  return bits == 64 ? word : word >> (bits * (k % layout.per)) & ((uint64_t{1} << bits) - 1);
}

uint64_t b_bits(const Layout& layout, int bits, const uint64_t* s, int k, int column) {
  const int chunk = 4 * layout.per;
  const int lane = column * 4 + k % chunk / layout.per, reg = layout.a_count() + k / chunk;
  const uint64_t word = s[lane * layout.sources() + reg];
  return bits == 64 ? word : word >> (bits * (k % layout.per)) & ((uint64_t{1} << bits) - 1);
}

/// Row and column of element `i` of a lane's C or D.
struct Place {
  int row, column;
};
Place c_place(int lane, int i) { return {lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2}; }

uint64_t c_bits(const Layout& layout, const uint64_t* s, int lane, int i) {
  const uint64_t word =
      s[lane * layout.sources() + layout.a_count() + layout.b_count() + i / layout.c_per];
  return layout.c_per == 2 ? word >> (16 * (i % 2)) & 0xffff : word;
}

/// The sum of exact products, rounded once. Half an ulp of a double beside a tie is left open: the
/// executor sums in double. Of f64, whose sums have no wider format, the ISA leaves the order open:
/// any double is right within the five roundings of four products and C.
Outcome define_element(const Layout& layout, const Element& a, const Element& b,
                       const Format& c_format, const Format& d_format, const uint64_t* s, int lane,
                       int i) {
  const Place place = c_place(lane, i);
  Real sum = read(c_format, c_bits(layout, s, lane, i));
  double magnitude = sum.is_nan() || sum.is_infinite() ? 0 : std::fabs(sum.approximately());
  for (int k = 0; k < layout.shape.k; ++k) {
    const Real product = multiply(read(*a.format, a_bits(layout, a.bits, s, place.row, k)),
                                  read(*b.format, b_bits(layout, b.bits, s, k, place.column)));
    sum = add(sum, product, Round::kNearest);
    magnitude += std::fabs(product.approximately());
  }
  if (sum.is_nan()) return any_nan(d_format);
  Outcome outcome{.want = round(d_format, sum, Round::kNearest)};
  if ((outcome.want & (d_format.sign_bit() - 1)) == 0)
    outcome.also = outcome.want ^ d_format.sign_bit();
  if (sum.is_infinite()) return outcome;
  Real error(1024), low(1024), high(1024);
  const bool dual = d_format.fraction_bits == 52;
  mpfr_set_d(error.get(), magnitude, MPFR_RNDU);
  mpfr_mul_2si(error.get(), error.get(), dual ? -50 : -45, MPFR_RNDU);
  low = add(sum, negate(error), Round::kNearest);
  high = add(sum, error, Round::kNearest);
  if (dual) {
    outcome.accept = [low, high](uint64_t got) {
      const Real value = read(kF64, got);
      return !value.is_nan() && mpfr_lessequal_p(low.get(), value.get()) &&
             mpfr_lessequal_p(value.get(), high.get());
    };
    return outcome;
  }
  const uint64_t low_bits = round(d_format, low, Round::kNearest),
                 high_bits = round(d_format, high, Round::kNearest);
  outcome.accept = [=](uint64_t got) { return got == low_bits || got == high_bits; };
  return outcome;
}

Form mma_form(const std::string& text, const Layout& layout, std::vector<Operand> to, Operand a,
              Operand b, Operand c, uint32_t sm) {
  const size_t d = to.size(), na = size_t(layout.a_count()), nb = size_t(layout.b_count()),
               nc = size_t(layout.c_count());
  Form form;
  form.text = text + " " + vector_list(0, d) + ", " + vector_list(d, na) + ", " +
              vector_list(d + na, nb) + ", " + vector_list(d + na + nb, nc) + ";";
  form.to = std::move(to);
  form.from.insert(form.from.end(), na, a);
  form.from.insert(form.from.end(), nb, b);
  form.from.insert(form.from.end(), nc, c);
  form.section = "9.7.14.5";
  form.sm = sm;
  form.pairs_max = 640;
  form.threads = 32;
  return form;
}

void floating(Forms& forms, Shape shape, const char* a_name, const char* b_name, const char* c_name,
              uint32_t sm) {
  const Element &a = element(a_name), &b = element(b_name);
  const bool half = std::string_view(c_name) == "f16", dual = std::string_view(c_name) == "f64";
  const Format& format = half ? kF16 : dual ? kF64 : kF32;
  const Layout layout{shape, dual ? 1 : 32 / a.bits, half ? 2 : 1};
  const std::string text = "mma.sync.aligned." + shape.text() + ".row.col." + c_name + "." +
                           a_name + "." + b_name + "." + c_name;
  for (const bool special : {false, true}) {
    const Operand c = half      ? (special ? "x_f16" : "m_f16")
                      : dual    ? (special ? "x_f64" : "m_f64")
                      : special ? "x_f32"
                                : "m_f32";
    const std::vector<Operand> to(size_t(layout.c_count()), dual ? "b64" : "b32");
    Form form = mma_form(text, layout, to, special ? a.special : a.operand,
                         special ? b.special : b.operand, c, sm);
    if (dual) form.pairs_max = 128;
    form.define_warp = [=, &a, &b, &format](uint64_t, const uint64_t* s, Outcome* d) {
      for (int lane = 0; lane < 32; ++lane) {
        for (int reg = 0; reg < layout.c_count(); ++reg) {
          Outcome& out = d[lane * layout.c_count() + reg];
          const int first = reg * layout.c_per;
          out = define_element(layout, a, b, format, format, s, lane, first);
          if (half)
            out = pack(out, define_element(layout, a, b, format, format, s, lane, first + 1));
        }
      }
    };
    forms.push_back(std::move(form));
  }
}

void integer(Forms& forms, Shape shape, const char* a_name, const char* b_name, bool saturate) {
  const Element &a = element(a_name), &b = element(b_name);
  const Layout layout{shape, 32 / a.bits, 1};
  const std::string text = "mma.sync.aligned." + shape.text() + ".row.col." +
                           (saturate ? "satfinite." : "") + "s32." + a_name + "." + b_name + ".s32";
  Form form = mma_form(text, layout, std::vector<Operand>(size_t(layout.c_count()), "s32"), "b32",
                       "b32", "s32", 80);
  form.define_warp = [=, &a, &b](uint64_t, const uint64_t* s, Outcome* d) {
    const Integer a_type(a.name), b_type(b.name), sum_type("s32");
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < layout.c_count(); ++i) {
        const Place place = c_place(lane, i);
        Wide sum = sum_type.value(c_bits(layout, s, lane, i));
        for (int k = 0; k < shape.k; ++k) {
          sum += a_type.value(a_bits(layout, a.bits, s, place.row, k)) *
                 b_type.value(b_bits(layout, b.bits, s, k, place.column));
        }
        d[lane * layout.c_count() + i].want = saturate ? sum_type.clamp(sum) : sum_type.wrap(sum);
      }
    }
  };
  forms.push_back(std::move(form));
}

void products(Forms& forms) {
  for (const Shape shape : {Shape{16, 8, 8}, Shape{16, 8, 16}}) {
    floating(forms, shape, "f16", "f16", "f32", 80);
    floating(forms, shape, "f16", "f16", "f16", 80);
    floating(forms, shape, "bf16", "bf16", "f32", 80);
  }
  floating(forms, {16, 8, 4}, "tf32", "tf32", "f32", 80);
  floating(forms, {16, 8, 8}, "tf32", "tf32", "f32", 80);
  floating(forms, {8, 8, 4}, "f64", "f64", "f64", 80);
  for (const char* a : {"e4m3", "e5m2"}) {
    for (const char* b : {"e4m3", "e5m2"}) {
      floating(forms, {16, 8, 32}, a, b, "f32", 89);
      floating(forms, {16, 8, 32}, a, b, "f16", 89);
      floating(forms, {16, 8, 16}, a, b, "f32", 89);
    }
  }
  for (const char* sign_a : {"s", "u"}) {
    for (const char* sign_b : {"s", "u"}) {
      for (const bool saturate : {false, true}) {
        // String literals live for ever; built names would not.
        const char* a8 = sign_a[0] == 's' ? "s8" : "u8";
        const char* b8 = sign_b[0] == 's' ? "s8" : "u8";
        const char* a4 = sign_a[0] == 's' ? "s4" : "u4";
        const char* b4 = sign_b[0] == 's' ? "s4" : "u4";
        for (const Shape shape : {Shape{8, 8, 16}, Shape{16, 8, 16}, Shape{16, 8, 32}})
          integer(forms, shape, a8, b8, saturate);
        for (const Shape shape : {Shape{8, 8, 32}, Shape{16, 8, 32}, Shape{16, 8, 64}})
          integer(forms, shape, a4, b4, saturate);
      }
    }
  }
}

/// 16 bytes of each lane lie in shared memory; lane l points to row (5l + 3) mod 32.
constexpr const char* kRows =
    ".shared .align 16 .b8 cell[512]; .reg .b32 t, c, p; mov.u32 t, %laneid; mov.u32 c, cell; ";
constexpr const char* kPermuted =
    "mad.lo.u32 p, t, 5, 3; and.b32 p, p, 31; shl.b32 p, p, 4; add.u32 p, p, c; ";
constexpr const char* kOwn = ".reg .b32 o; shl.b32 o, t, 4; add.u32 o, o, c; ";
int permuted(int lane) { return (5 * lane + 3) % 32; }

/// The b16 element (row, column) of the 8x8 matrix whose row addresses lanes 8i..8i+7 give.
uint64_t matrix_element(const uint64_t* s, int matrix, int row, int column) {
  const int source = permuted(8 * matrix + row);
  return s[2 * source + column / 4] >> (16 * (column % 4)) & 0xffff;
}

void load_matrices(Forms& forms) {
  for (const int count : {1, 2, 4}) {
    for (const bool trans : {false, true}) {
      const std::string x = ".x" + std::to_string(count), t = trans ? ".trans" : "";
      for (const std::string& opcode : {".m8n8" + x + t + ".shared.b16", ".m8n8" + x + t + ".b16",
                                        t + ".m8n8" + x + ".shared.b16", x + t + ".m8n8.shared.b16",
                                        ".m8n8" + x + t + ".shared::cta.b16"}) {
        const bool generic = opcode.find("shared") == opcode.npos;
        const std::string address =
            generic ? ".reg .b64 g; cvt.u64.u32 g, p; cvta.shared.u64 g, g; " : "";
        Form form;
        form.text = std::string("{ ") + kRows + kPermuted + kOwn + "st.shared.b64 [o], $" +
                    std::to_string(count) + "; st.shared.b64 [o+8], $" + std::to_string(count + 1) +
                    "; bar.sync 0; " + address + "ldmatrix.sync.aligned" + opcode + " " +
                    vector_list(0, size_t(count)) + ", [" + (generic ? "g" : "p") + "]; }";
        form.to.assign(size_t(count), "b32");
        form.from = {"b64", "b64"};
        form.section = "9.7.14.5.15";
        form.pairs_max = 320;
        form.threads = 32;
        form.define_warp = [=](uint64_t, const uint64_t* s, Outcome* d) {
          for (int lane = 0; lane < 32; ++lane) {
            for (int i = 0; i < count; ++i) {
              const int major = lane / 4, minor = lane % 4 * 2;
              d[lane * count + i].want = trans ? matrix_element(s, i, minor, major) |
                                                     matrix_element(s, i, minor + 1, major) << 16
                                               : matrix_element(s, i, major, minor) |
                                                     matrix_element(s, i, major, minor + 1) << 16;
            }
          }
        };
        forms.push_back(std::move(form));
      }
    }
  }
}

void store_matrices(Forms& forms) {
  for (const int count : {1, 2, 4}) {
    for (const bool trans : {false, true}) {
      const std::string x = ".x" + std::to_string(count), t = trans ? ".trans" : "";
      for (const std::string& opcode :
           {".m8n8" + x + t + ".shared.b16", x + t + ".m8n8.shared.b16"}) {
        Form form;
        const std::string list = vector_list(2, size_t(count));
        form.text = std::string("{ ") + kRows + kPermuted + kOwn +
                    ".reg .b64 z; mov.b64 z, 0; st.shared.b64 [o], z; st.shared.b64 [o+8], z; "
                    "bar.sync 0; " +
                    "stmatrix.sync.aligned" + opcode + " [p], " + list +
                    "; bar.sync 0; ld.shared.b64 $0, [o]; ld.shared.b64 $1, [o+8]; }";
        form.to = {"b64", "b64"};
        form.from.assign(size_t(count), "b32");
        form.section = "9.7.14.5.16";
        form.sm = 90;
        form.pairs_max = 320;
        form.threads = 32;
        form.define_warp = [=](uint64_t, const uint64_t* s, Outcome* d) {
          for (int i = 0; i < count; ++i) {
            for (int lane = 0; lane < 32; ++lane) {
              for (int half = 0; half < 2; ++half) {
                const uint64_t value = s[lane * count + i] >> (16 * half) & 0xffff;
                const int major = lane / 4, minor = lane % 4 * 2 + half;
                const int row = trans ? minor : major, column = trans ? major : minor;
                const int target = permuted(8 * i + row);
                d[2 * target + column / 4].want |= value << (16 * (column % 4));
              }
            }
          }
        };
        forms.push_back(std::move(form));
      }
    }
  }
}

void transpose(Forms& forms) {
  Form form;
  form.text = "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;";
  form.to = {"b32"};
  form.from = {"b32"};
  form.section = "9.7.14.5.17";
  form.pairs_max = 320;
  form.threads = 32;
  form.define_warp = [](uint64_t, const uint64_t* s, Outcome* d) {
    const auto at = [s](int row, int column) {
      return s[row * 4 + column / 2] >> (16 * (column % 2)) & 0xffff;
    };
    for (int lane = 0; lane < 32; ++lane) {
      d[lane].want = at(lane % 4 * 2, lane / 4) | at(lane % 4 * 2 + 1, lane / 4) << 16;
    }
  };
  forms.push_back(std::move(form));
}

}  // namespace

std::vector<Form> matrix_forms() {
  Forms forms;
  products(forms);
  load_matrices(forms);
  store_matrices(forms);
  transpose(forms);
  return forms;
}

}  // namespace kv::simt::semantics
