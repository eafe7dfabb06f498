#include "harness/core/formats.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/core/check.h"

namespace kv {
namespace {

// A binary format with `mantissa` stored bits and smallest normal exponent `exponent_min`. Codes
// are signless; codes above `code_max` are not finite.
struct BinaryFormat {
  int bits, mantissa, exponent_min;
  uint32_t code_max;  // largest finite
  uint32_t overflow;  // code of infinity, or of NaN where there is no infinity
  uint32_t nan;       // canonical NaN: sign clear, payload all ones
};

constexpr BinaryFormat kF32Format{32, 23, -126, 0x7f7fffff, 0x7f800000, 0x7fffffff};
constexpr BinaryFormat kF16Format{16, 10, -14, 0x7bff, 0x7c00, 0x7fff};
constexpr BinaryFormat kBf16Format{16, 7, -126, 0x7f7f, 0x7f80, 0x7fff};
constexpr BinaryFormat kE4m3Format{8, 3, -6, 0x7e, 0x7f, 0x7f};
constexpr BinaryFormat kE5m2Format{8, 2, -14, 0x7b, 0x7c, 0x7f};

constexpr const BinaryFormat& binary_format(DType type) {
  switch (type) {
    case DType::kF32:
      return kF32Format;
    case DType::kF16:
      return kF16Format;
    case DType::kBf16:
      return kBf16Format;
    case DType::kE4m3:
      return kE4m3Format;
    default:
      return kE5m2Format;
  }
}

enum class Direction { kNearest, kTowardZero, kAwayFromZero };

// The integer nearest to significand / 2^shift in the given direction; ties to even.
constexpr uint64_t shift_rounded(uint64_t significand, int shift, Direction direction) {
  if (shift > 63) return direction == Direction::kAwayFromZero && significand != 0;
  const uint64_t kept = significand >> shift;
  const uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
  switch (direction) {
    case Direction::kTowardZero:
      return kept;
    case Direction::kAwayFromZero:
      return kept + (rest != 0);
    default:
      break;
  }
  const uint64_t half = uint64_t{1} << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)));
}

// Code of the finite magnitude with double bits `magnitude`. A carry out of the significand runs
// into the exponent field, which is what rounding up to the next binade means.
uint64_t encode_magnitude(const BinaryFormat& f, uint64_t magnitude, Direction direction) {
  const int drop = 52 - f.mantissa;
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent >= f.exponent_min) {
    const uint64_t rebased = magnitude - (static_cast<uint64_t>(1022 + f.exponent_min) << 52);
    return shift_rounded(rebased, drop, direction);
  }
  uint64_t significand = magnitude & ((uint64_t{1} << 52) - 1);
  if (magnitude >> 52 != 0) significand |= uint64_t{1} << 52;
  return shift_rounded(significand, drop + f.exponent_min - exponent, direction);
}

uint32_t encode_binary(const BinaryFormat& f, double value, Direction direction, bool saturate) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const uint32_t sign = static_cast<uint32_t>(bits >> 63) << (f.bits - 1);
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  constexpr uint64_t kInfinity = uint64_t{0x7ff} << 52;
  if (magnitude > kInfinity) return f.nan;
  if (magnitude == kInfinity) return sign | (saturate ? f.code_max : f.overflow);
  const uint64_t code = encode_magnitude(f, magnitude, direction);
  if (code <= f.code_max) return sign | static_cast<uint32_t>(code);
  const bool finite = saturate || direction == Direction::kTowardZero;
  return sign | (finite ? f.code_max : f.overflow);
}

double decode_binary(const BinaryFormat& f, uint32_t bits) {
  const uint32_t sign = bits >> (f.bits - 1) & 1;
  const uint32_t code = bits & ((uint32_t{1} << (f.bits - 1)) - 1);
  const uint64_t signed_zero = static_cast<uint64_t>(sign) << 63;
  if (code > f.code_max) {
    const bool infinite = code == f.overflow && f.overflow != f.nan;
    const double special = infinite ? std::numeric_limits<double>::infinity()
                                    : std::numeric_limits<double>::quiet_NaN();
    return std::bit_cast<double>(std::bit_cast<uint64_t>(special) | signed_zero);
  }
  // The code's fields, moved to where double has them, are the value times 2^(bias difference);
  // multiplying by that power of two is exact, also for subnormal codes.
  const uint64_t moved = static_cast<uint64_t>(code) << (52 - f.mantissa) | signed_zero;
  const uint64_t factor = static_cast<uint64_t>(1023 + 1022 + f.exponent_min) << 52;
  return std::bit_cast<double>(moved) * std::bit_cast<double>(factor);
}

uint32_t int8_code(double rounded) {
  if (std::isnan(rounded)) return 0;
  const double clamped = rounded > 127 ? 127 : rounded < -127 ? -127 : rounded;
  return static_cast<uint8_t>(static_cast<int8_t>(clamped));
}

// Round to nearest even, whatever the rounding mode of the thread: clamping first keeps it exact.
double nearest_even(double value) {
  if (!(std::fabs(value) < 1024)) return value;
  const double floor = std::floor(value), rest = value - floor;
  if (rest != 0.5) return rest > 0.5 ? floor + 1 : floor;
  return std::fmod(floor, 2) == 0 ? floor : floor + 1;
}

template <DType kType>
std::array<double, 256> make_table() {
  std::array<double, 256> table{};
  for (uint32_t code = 0; code < 256; ++code) table[code] = decode(kType, code);
  return table;
}

template <class Storage, class Decode>
void decode_each(const std::byte* bits, size_t count, double* out, Decode decode_one) {
  for (size_t i = 0; i < count; ++i) {
    Storage code;
    std::memcpy(&code, bits + i * sizeof(Storage), sizeof(Storage));
    out[i] = decode_one(code);
  }
}

// Branch free, so that the compiler may use vector instructions: infinities and NaN have the
// largest exponent, which is moved on to double's largest by adding the difference of the biases.
double decode_f16(uint16_t bits) {
  const uint64_t code = bits & 0x7fff;
  const uint64_t sign = static_cast<uint64_t>(bits & 0x8000) << 48;
  const double finite = std::bit_cast<double>(code << 42) * 0x1p1008;
  const uint64_t special = uint64_t{0x7ff} << 52 | code << 42;
  const uint64_t magnitude = code >= 0x7c00 ? special : std::bit_cast<uint64_t>(finite);
  return std::bit_cast<double>(magnitude | sign);
}

}  // namespace

std::string_view dtype_name(DType type) {
  switch (type) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBf16:
      return "bf16";
    case DType::kE4m3:
      return "e4m3";
    case DType::kE5m2:
      return "e5m2";
    case DType::kI8:
      return "i8";
  }
  return "?";
}

uint32_t encode(DType type, double value) {
  if (type == DType::kI8) return int8_code(nearest_even(value));
  return encode_binary(binary_format(type), value, Direction::kNearest, false);
}

uint32_t encode_saturating(DType type, double value) {
  if (type == DType::kI8) return int8_code(nearest_even(value));
  return encode_binary(binary_format(type), value, Direction::kNearest, true);
}

uint32_t encode_down(DType type, double value) {
  if (type == DType::kI8) return int8_code(std::floor(value));
  const auto toward = std::signbit(value) ? Direction::kAwayFromZero : Direction::kTowardZero;
  return encode_binary(binary_format(type), value, toward, false);
}

uint32_t encode_up(DType type, double value) {
  if (type == DType::kI8) return int8_code(std::ceil(value));
  const auto toward = std::signbit(value) ? Direction::kTowardZero : Direction::kAwayFromZero;
  return encode_binary(binary_format(type), value, toward, false);
}

double decode(DType type, uint32_t bits) {
  if (type == DType::kI8) return static_cast<int8_t>(bits & 0xff);
  return decode_binary(binary_format(type), bits);
}

void decode_row(DType type, const std::byte* bits, size_t count, double* out) {
  static const std::array<double, 256> e4m3 = make_table<DType::kE4m3>();
  static const std::array<double, 256> e5m2 = make_table<DType::kE5m2>();
  switch (type) {
    case DType::kF32:
      return decode_each<float>(bits, count, out, [](float x) { return double{x}; });
    case DType::kF16:
      return decode_each<uint16_t>(bits, count, out, decode_f16);
    case DType::kBf16:
      return decode_each<uint16_t>(bits, count, out, [](uint16_t x) {
        return double{std::bit_cast<float>(static_cast<uint32_t>(x) << 16)};
      });
    case DType::kE4m3:
      return decode_each<uint8_t>(bits, count, out, [](uint8_t x) { return e4m3[x]; });
    case DType::kE5m2:
      return decode_each<uint8_t>(bits, count, out, [](uint8_t x) { return e5m2[x]; });
    case DType::kI8:
      return decode_each<int8_t>(bits, count, out, [](int8_t x) { return double(x); });
  }
}

void encode_row(DType type, const double* values, size_t count, std::byte* out) {
  const uint32_t stride = dtype_bytes(type);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t code = encode(type, values[i]);
    std::memcpy(out + i * stride, &code, stride);
  }
}

double dtype_max(DType type) {
  return type == DType::kI8 ? 127 : decode(type, binary_format(type).code_max);
}

double dtype_min_subnormal(DType type) { return type == DType::kI8 ? 1 : decode(type, 1); }

double dtype_unit_roundoff(DType type) {
  if (type == DType::kI8) return 0;
  return std::bit_cast<double>(static_cast<uint64_t>(1022 - binary_format(type).mantissa) << 52);
}

}  // namespace kv
