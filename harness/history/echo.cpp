#include "harness/history/echo.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "harness/plugin/kverify_plugin.h"

namespace kv {
namespace {

std::string text_of(const EchoPlace& place) {
  return fmt::format("request {} in step {}", place.request.value, place.step);
}

std::string hex(std::span<const std::byte> bytes) {
  std::string text = "0x";
  for (size_t i = bytes.size(); i > 0; --i) {
    text += fmt::format("{:02x}", std::to_integer<unsigned>(bytes[i - 1]));
  }
  return text;
}

}  // namespace

bool promises_echo(const Conventions& conventions) {
  constexpr uint32_t kNeeded = KV_PROMISE_BATCH | KV_PROMISE_PAGE;
  return (conventions.promises & kNeeded) == kNeeded;
}

MaybeFinding Echo::hear(uint64_t key, const EchoRow& row, const EchoPlace& place) {
  const bool is_twin = !twin_.empty();
  const auto [at, is_new] = heard_.try_emplace(key);
  Heard& first = at->second;
  if (is_new) {
    first = {.output = {row.output.begin(), row.output.end()},
             .lses = row.lses,
             .place = place,
             .twin = is_twin};
    return std::nullopt;
  }
  ++(first.twin == is_twin ? repeats_ : shared_);
  std::string difference;
  const auto [a, b] =
      std::mismatch(first.output.begin(), first.output.end(), row.output.begin(), row.output.end());
  const auto same_bits = [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  };
  const auto [c, d] = std::mismatch(first.lses.begin(), first.lses.end(), row.lses.begin(),
                                    row.lses.end(), same_bits);
  if (a != first.output.end()) {
    constexpr ptrdiff_t kTold = 2;
    const ptrdiff_t byte = (a - first.output.begin()) / kTold * kTold;
    const auto part = [&](std::span<const std::byte> all) {
      return hex(all.subspan(static_cast<size_t>(byte),
                             std::min<size_t>(kTold, all.size() - static_cast<size_t>(byte))));
    };
    difference = fmt::format("bytes {} of the output are {} and {}", byte, part(first.output),
                             part(row.output));
  } else if (c != first.lses.end()) {
    difference = fmt::format("the LSE of head {} is {:#010x} and {:#010x}", c - first.lses.begin(),
                             std::bit_cast<uint32_t>(*c), std::bit_cast<uint32_t>(*d));
  }
  if (difference.empty()) return std::nullopt;
  const std::string where = first.twin == is_twin ? "" : " of the history itself";
  return HistoryFinding{
      .check = CheckClass::kEcho,
      .message = fmt::format(
          "the same {} tokens, seen from slot {}, layer {}{}, gave other bits to "
          "{} than to {}{}: {}",
          place.slot + 1, place.slot, place.layer, place.draft ? " of the draft model" : "",
          text_of(place), text_of(first.place), where, difference),
      .request = place.request,
      .slot = place.slot,
      .layer = place.layer,
      .draft = place.draft};
}

}  // namespace kv
