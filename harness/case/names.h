// Purpose: the one spelling of every enumerator, in JSON, in messages and in reports.
// Contract: name_table<E>() lists the names in the order of the enumerators.
// Example:  name_of(PageOrder::kFarApart) == "far_apart"
#pragma once

#include <span>
#include <string_view>

#include "harness/case/case.h"

namespace kv {

template <class E>
std::span<const std::string_view> name_table();

template <>
std::span<const std::string_view> name_table<DType>();
template <>
std::span<const std::string_view> name_table<RopePairing>();
template <>
std::span<const std::string_view> name_table<KvScale>();
template <>
std::span<const std::string_view> name_table<Causal>();
template <>
std::span<const std::string_view> name_table<MaskEncoding>();
template <>
std::span<const std::string_view> name_table<PageOrder>();
template <>
std::span<const std::string_view> name_table<CacheLayout>();
template <>
std::span<const std::string_view> name_table<Poison>();
template <>
std::span<const std::string_view> name_table<Design>();
template <>
std::span<const std::string_view> name_table<Rounding>();
template <>
std::span<const std::string_view> name_table<op::Hostile::Kind>();

template <class E>
std::string_view name_of(E value) {
  const auto table = name_table<E>();
  const auto index = static_cast<size_t>(value);
  return index < table.size() ? table[index] : "?";
}

/// Names of the operations in the order of the alternatives of Op.
std::span<const std::string_view> op_names();
inline std::string_view op_name(const Op& op) { return op_names()[op.index()]; }

}  // namespace kv
