#include "impl/engine/host_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace kvattn {
namespace {

/// Binary floating point of up to 16 bits.
struct Floating {
  int mantissa = 0, bias = 0;
  double largest = 0;
  int exponent_min() const { return 1 - bias; }
};
Floating floating_of(DType type) {
  switch (type) {
    case DType::kBF16:
      return {.mantissa = 7, .bias = 127, .largest = 0x1.fep127};
    case DType::kE4M3:
      return {.mantissa = 3, .bias = 7, .largest = 448};
    case DType::kE5M2:
      return {.mantissa = 2, .bias = 15, .largest = 57344};
    default:
      return {.mantissa = 10, .bias = 15, .largest = 65504};
  }
}

double decoded(DType type, const std::byte* from) {
  if (type == DType::kF32) {
    float x = 0;
    std::memcpy(&x, from, sizeof x);
    return double{x};
  }
  uint16_t code = 0;
  std::memcpy(&code, from, sizeof code);
  const Floating f = floating_of(type);
  const int exponent = (code & 0x7fff) >> f.mantissa;
  const int fraction = code & ((1 << f.mantissa) - 1);
  const int whole = exponent == 0 ? fraction : fraction + (1 << f.mantissa);
  const double x = std::ldexp(whole, std::max(exponent, 1) - f.bias - f.mantissa);
  return (code >> 15) != 0 ? -x : x;
}

uint32_t code_of(const Floating& f, double x) {
  int exponent = f.exponent_min();
  if (x != 0) exponent = std::max(exponent, std::ilogb(x));
  const double units = std::nearbyint(std::ldexp(x, f.mantissa - exponent));
  const double rounded = std::min(std::ldexp(units, exponent - f.mantissa), f.largest);
  if (rounded < std::ldexp(1, f.exponent_min())) return static_cast<uint32_t>(units);
  exponent = std::ilogb(rounded);
  const auto whole = static_cast<uint32_t>(std::ldexp(rounded, f.mantissa - exponent));
  return static_cast<uint32_t>(exponent + f.bias - 1) * (1u << f.mantissa) + whole;
}

void encode(DType type, double x, std::byte* to) {
  if (type == DType::kF32) {
    const auto value = static_cast<float>(x);
    std::memcpy(to, &value, sizeof value);
    return;
  }
  if (type == DType::kI8) {
    const auto code = static_cast<int8_t>(std::clamp(std::nearbyint(x), -127.0, 127.0));
    std::memcpy(to, &code, sizeof code);
    return;
  }
  const auto bytes = static_cast<size_t>(dtype_bytes(type));
  uint32_t code = code_of(floating_of(type), std::fabs(x));
  if (std::signbit(x)) code |= 1u << (8 * bytes - 1);
  std::memcpy(to, &code, bytes);
}

/// By how much each pair of dimensions turns at a position, whatever the head.
struct Turn {
  double cosine, sine;
};
std::vector<Turn> turns_of(const Rope& rope, int64_t position) {
  std::vector<Turn> turns(static_cast<size_t>(rope.dims / 2));
  for (size_t i = 0; i < turns.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rope.dims);
    const double angle = static_cast<double>(position) * std::pow(rope.theta, exponent);
    turns[i] = {std::cos(angle), std::sin(angle)};
  }
  return turns;
}

/// No turns leave the row as it is.
void turn(const Rope& rope, const std::vector<Turn>& turns, double* row) {
  const bool is_neox = rope.pairing == Rope::Pairing::kNeox;
  for (size_t i = 0; i < turns.size(); ++i) {
    double& a = row[is_neox ? i : 2 * i];
    double& b = row[is_neox ? i + turns.size() : 2 * i + 1];
    const double first = a;
    a = first * turns[i].cosine - b * turns[i].sine;
    b = b * turns[i].cosine + first * turns[i].sine;
  }
}

}  // namespace

void store_row(const CacheFormat& format, const HostRow& row, std::byte* to) {
  const auto dims = static_cast<size_t>(format.head_dim);
  const auto given_bytes = static_cast<size_t>(dtype_bytes(format.given));
  const auto stored_bytes = static_cast<size_t>(dtype_bytes(format.stored));
  const std::vector<Turn> turns =
      row.turns ? turns_of(format.rope, row.position) : std::vector<Turn>();
  std::vector<double> elements(dims);
  for (size_t head = 0; head < static_cast<size_t>(format.kv_heads); ++head) {
    for (size_t i = 0; i < dims; ++i) {
      elements[i] = decoded(format.given, row.given + (head * dims + i) * given_bytes);
    }
    turn(format.rope, turns, elements.data());
    const double scale = row.scales == nullptr ? 1.0 : double{row.scales[head]};
    for (size_t i = 0; i < dims; ++i) {
      encode(format.stored, elements[i] / scale, to + (head * dims + i) * stored_bytes);
    }
  }
}

}  // namespace kvattn
