#include "harness/history/written.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace kv {
namespace {

constexpr int64_t kTurnsMax = 8;  // of one token that nobody has looked at in between
constexpr int64_t kNearMax = 8;   // positions that a wrong one is looked for around the right one

std::string hex_of(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte byte : bytes.first(std::min<size_t>(bytes.size(), 8))) {
    text += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  return text;
}

RopePairing other_pairing(RopePairing pairing) {
  return pairing == RopePairing::kNeox ? RopePairing::kInterleaved : RopePairing::kNeox;
}

}  // namespace

Written::Written(const Case& c) : case_(c), content_(c), rows_(c.shape) {}

// V is never turned.
Written::Key Written::key_of(const Slot& slot) {
  return {.history = slot.token.history,
          .position = slot.token.position,
          .turned_back = slot.value ? 0 : slot.token.turned_back,
          .layer = slot.layer.layer,
          .draft = slot.layer.draft,
          .value = slot.value};
}

void Written::note_turned(const Turned& turned) {
  Slot slot{.token = turned.before, .layer = {.draft = turned.draft}};
  slot.token.turned_back += turned.back;
  turns_[key_of(slot)].insert(turned.back);
}

// What append received.
Written::Source Written::source_of(const Slot& slot) const {
  Bytes all(slot.value ? content_.value_bytes() : content_.key_bytes());
  if (slot.value) {
    content_.value(slot.token, slot.layer, all);
  } else {
    content_.key(slot.token, slot.layer, all);
  }
  Source source{.position = slot.token.position};
  const DType type = tensor_dtype(case_.shape, TensorRole::kKey);
  const size_t count = elements(slot.value);
  for (uint32_t head = 0; head < case_.shape.kv_heads; ++head) {
    auto& row = source.heads.emplace_back(count);
    decode_row(type, all.data() + head * count * dtype_bytes(type), count, row.data());
  }
  return source;
}

// K as it is stored, times its scale.
Written::Source Written::decoded(std::span<const std::byte> bytes) const {
  Source source;
  const DType type = case_.shape.kv_dtype;
  const size_t count = elements(false);
  for (uint32_t head = 0; head < case_.shape.kv_heads; ++head) {
    auto& row = source.heads.emplace_back(count);
    decode_row(type, bytes.data() + head * count * dtype_bytes(type), count, row.data());
    for (double& x : row) x *= double{scales_[head]};
  }
  return source;
}

// K before the last turn: what was seen then, or else whatever may have been there.
std::vector<Written::Source> Written::sources_before_turn(const Slot& slot, int64_t back) {
  Slot before = slot;
  before.token.turned_back -= back;
  std::vector<Source> sources;
  const auto seen = seen_.find(key_of(before));
  if (seen != seen_.end()) {
    for (const Bytes& bytes : seen->second) sources.push_back(decoded(bytes));
  } else {
    for (const Source& origin : sources_of(before)) {
      Source unseen;
      for (uint32_t head = 0; head < case_.shape.kv_heads; ++head) {
        rows_.admissible({.source = origin.heads[head],
                          .source_error = origin.error,
                          .position = origin.position,
                          .scale = scales_[head]},
                         elements_);
        auto& row = unseen.heads.emplace_back();
        for (const auto& e : elements_) {
          const double scale = double{e.scale};
          row.push_back((e.range.low + e.range.high) / 2 * scale);
          const double width = (e.range.high - e.range.low) / 2 * std::max(scale, -scale);
          unseen.error = std::max(unseen.error, width);
        }
      }
      sources.push_back(std::move(unseen));
    }
  }
  for (Source& source : sources) source.position = -back;
  return sources;
}

std::vector<Written::Source> Written::sources_of(const Slot& slot) {
  const bool turned = !slot.value && slot.token.turned_back != 0;
  if (!turned) return {source_of(slot)};
  Key key = key_of(slot);
  key.layer = 0;
  std::vector<Source> sources;
  const auto turns = turns_.find(key);
  if (turns == turns_.end()) return sources;
  for (const int64_t back : turns->second) {
    if (static_cast<int64_t>(sources.size()) >= kTurnsMax) break;
    for (Source& source : sources_before_turn(slot, back)) sources.push_back(std::move(source));
  }
  return sources;
}

bool Written::admits(const reference::StoredRows& rows, const Slot& slot, const Source& source,
                     std::span<const std::byte> bytes) {
  const size_t head_bytes = elements(slot.value) * dtype_bytes(case_.shape.kv_dtype);
  for (uint32_t head = 0; head < case_.shape.kv_heads; ++head) {
    rows.admissible({.source = source.heads[head],
                     .source_error = source.error,
                     .value = slot.value,
                     .position = source.position,
                     .scale = scales_[head]},
                    elements_);
    if (!rows.admits(elements_, bytes.subspan(head * head_bytes, head_bytes))) return false;
  }
  return true;
}

std::optional<std::string> Written::find_scale_fault(const Slot& slot,
                                                     std::span<const float> scales) {
  scales_.assign(case_.shape.kv_heads, 1.0f);
  if (!content_.has_scales()) return std::nullopt;
  content_.scales(slot.scale_history, slot.layer, slot.value, scales_);
  if (scales.size() != scales_.size()) return "its scales cannot be read";
  for (size_t head = 0; head < scales_.size(); ++head) {
    if (std::memcmp(&scales[head], &scales_[head], sizeof(float)) == 0) continue;
    return fmt::format("the scale of head {} is not its {}'s: expected {}, got {}", head,
                       has_page_scales() ? "page" : "token", scales_[head], scales[head]);
  }
  return std::nullopt;
}

std::optional<std::string> Written::find_fault(const Slot& slot, std::span<const std::byte> bytes,
                                               std::span<const float> scales) {
  if (auto fault = find_scale_fault(slot, scales)) return fault;
  std::vector<Bytes>& seen = seen_[key_of(slot)];
  const auto is_these = [&](const Bytes& one) { return std::ranges::equal(one, bytes); };
  if (std::ranges::any_of(seen, is_these)) return std::nullopt;
  const bool may_be_new = seen.empty() ||
                          appended_.contains({slot.token.history, slot.layer.draft}) ||
                          (!slot.value && slot.token.turned_back != 0);
  if (!may_be_new) {
    return fmt::format("expected {}, as it was written and has not been again, got {}",
                       hex_of(seen.front()), hex_of(bytes));
  }
  const std::vector<Source> sources = sources_of(slot);
  for (const Source& source : sources) {
    if (!admits(rows_, slot, source, bytes)) continue;
    seen.emplace_back(bytes.begin(), bytes.end());
    return std::nullopt;
  }
  if (sources.empty()) return "nothing is known of the K that was turned there";
  return element_fault(slot, sources.front(), bytes) + likely_cause(slot, sources.front(), bytes);
}

std::string Written::element_fault(const Slot& slot, const Source& source,
                                   std::span<const std::byte> bytes) {
  const DType type = case_.shape.kv_dtype;
  const size_t one = dtype_bytes(type);
  for (uint32_t head = 0; head < case_.shape.kv_heads; ++head) {
    rows_.admissible({.source = source.heads[head],
                      .source_error = source.error,
                      .value = slot.value,
                      .position = source.position,
                      .scale = scales_[head]},
                     elements_);
    for (size_t i = 0; i < elements_.size(); ++i) {
      const auto code = bytes.subspan((head * elements_.size() + i) * one, one);
      if (rows_.admits(std::span(elements_).subspan(i, 1), code)) continue;
      double got = 0;
      decode_row(type, code.data(), 1, &got);
      return fmt::format("{} of head {}, dimension {} is {}: {}", slot.value ? "V" : "K", head, i,
                         got, rows_.text(elements_[i], slot.value, source.position));
    }
  }
  return "";
}

// Which mistakes of a rotation would have written these bytes.
std::string Written::likely_cause(const Slot& slot, const Source& source,
                                  std::span<const std::byte> bytes) {
  if (slot.value || !rows_.rotates()) return "";
  Source other = source;
  for (int64_t distance = 1; distance <= kNearMax; ++distance) {
    for (const int64_t position : {source.position - distance, source.position + distance}) {
      other.position = position;
      if (!admits(rows_, slot, other, bytes)) continue;
      return fmt::format("; it is turned to position {}", position);
    }
  }
  Shape shape = case_.shape;
  shape.rope.pairing = other_pairing(shape.rope.pairing);
  if (admits(reference::StoredRows(shape), slot, source, bytes)) {
    return "; its pairs are those of the other pairing";
  }
  return "";
}

}  // namespace kv
