#include <array>

#include "harness/simt/ptx/module.h"

namespace kv::simt::ptx {
namespace {

struct TypeRow {
  std::string_view name;
  Type type;
  uint32_t bytes;
};

constexpr std::array kTypes = std::to_array<TypeRow>({
    {"pred", Type::kPred, 0},     {"b8", Type::kB8, 1},         {"b16", Type::kB16, 2},
    {"b32", Type::kB32, 4},       {"b64", Type::kB64, 8},       {"b128", Type::kB128, 16},
    {"u8", Type::kU8, 1},         {"u16", Type::kU16, 2},       {"u32", Type::kU32, 4},
    {"u64", Type::kU64, 8},       {"s8", Type::kS8, 1},         {"s16", Type::kS16, 2},
    {"s32", Type::kS32, 4},       {"s64", Type::kS64, 8},       {"f16", Type::kF16, 2},
    {"f16x2", Type::kF16x2, 4},   {"bf16", Type::kBf16, 2},     {"bf16x2", Type::kBf16x2, 4},
    {"tf32", Type::kTf32, 4},     {"f32", Type::kF32, 4},       {"f32x2", Type::kF32x2, 8},
    {"f64", Type::kF64, 8},       {"e4m3", Type::kE4m3, 1},     {"e5m2", Type::kE5m2, 1},
    {"e4m3x2", Type::kE4m3x2, 2}, {"e5m2x2", Type::kE5m2x2, 2},
});

}  // namespace

uint32_t type_bytes(Type type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.bytes;
  }
  return 0;
}

std::optional<Type> type_from_name(std::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

}  // namespace kv::simt::ptx
