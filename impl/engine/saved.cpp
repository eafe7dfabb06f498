// A request as bytes: a header, the tokens, then K and V of every slot that has not expired, group
// by group, layer by layer, slot by slot. Saved bytes come from anywhere: they are checked to the
// last one before anything is admitted. Codes mean nothing without their scales: those must be the
// model's own where tensors or heads have them, and else such as append could have left.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "kvattn/engine.h"

namespace kvattn {
namespace {

constexpr uint64_t kMagic = 0x323056415354564b;  // "KVTSAV02"

struct Header {
  uint64_t magic = kMagic, bytes = 0;
  uint64_t checksum = 0;  // of all bytes, with a zero for itself
  uint64_t side_input = 0;
  int64_t position_offset = 0, length = 0;
  int64_t key_bytes = 0, value_bytes = 0, scales = 0, groups = 0, layers = 0;
  int64_t dtype = 0, scale_granularity = 0, rope_pairing = 0, rope_dims = 0;  // as CacheFormat's
  double rope_theta = 0;
  int64_t kept_from[kGroupsMax] = {};  // slot
};

void set_format(Header& h, const CacheFormat& format) {
  h.dtype = static_cast<int64_t>(format.stored);
  h.scale_granularity = static_cast<int64_t>(format.scales);
  h.rope_pairing = static_cast<int64_t>(format.rope.pairing);
  if (format.rope.pairing == Rope::Pairing::kNone) return;
  h.rope_dims = format.rope.dims;
  h.rope_theta = format.rope.theta;
}

// FNV-1a over words, the last one of each part filled up with zeros.
uint64_t hash_of(uint64_t hash, std::span<const std::byte> bytes) {
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(8, bytes.size() - i));
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  return hash;
}

uint64_t checksum(Header h, std::span<const std::byte> bytes) {
  h.checksum = 0;
  const uint64_t hash = hash_of(0xcbf29ce484222325, std::as_bytes(std::span(&h, 1)));
  return hash_of(hash, bytes.subspan(sizeof h));
}

int64_t layers_of(const PagedCacheConfig& c) {
  int64_t layers = 0;
  for (const LayerGroup& group : c.groups) layers += group.layers;
  return layers;
}

/// K, V, the scales of K, the scales of V.
int64_t slot_bytes(const Header& h) {
  return h.key_bytes + h.value_bytes + 2 * h.scales * int64_t{sizeof(float)};
}

/// Where they lie, from the first of a slot's bytes on.
template <class Bytes, class Byte>
Bytes parts_of(const Header& h, Byte* slot) {
  Byte* scales = slot + h.key_bytes + h.value_bytes;
  Bytes bytes{.key = slot, .value = slot + h.key_bytes};
  if (h.scales == 0) return bytes;
  bytes.key_scales = scales;
  bytes.value_scales = scales + h.scales * int64_t{sizeof(float)};
  return bytes;
}

/// Calls visit(group, layer, slot, offset of its bytes) for all slots in [kept_from, length).
template <class Visit>
Status each_slot(const PagedCacheConfig& c, const Header& h, Visit visit) {
  int32_t layer = 0;
  int64_t offset = static_cast<int64_t>(sizeof h) + h.length * int64_t{sizeof(Token)};
  for (int32_t g = 0; g < std::ssize(c.groups); ++g) {
    for (int32_t i = 0; i < c.groups[g].layers; ++i, ++layer) {
      for (int64_t slot = h.kept_from[g]; slot < h.length; ++slot) {
        KVATTN_RETURN_IF_ERROR(visit(g, layer, slot, offset));
        offset += slot_bytes(h);
      }
    }
  }
  return {};
}

/// Of the whole file, by its header, whose numbers are in range.
int64_t bytes_of(const PagedCacheConfig& c, const Header& h) {
  int64_t slots = 0;
  for (int32_t g = 0; g < std::ssize(c.groups); ++g) {
    slots += c.groups[g].layers * (h.length - h.kept_from[g]);
  }
  return static_cast<int64_t>(sizeof h) + h.length * int64_t{sizeof(Token)} + slots * slot_bytes(h);
}

std::string format_text(const Header& h) {
  return sentence("elements of type ", h.dtype, ", scales ", h.scale_granularity, ", RoPE ",
                  h.rope_pairing, " of ", h.rope_dims, " dimensions with base ", h.rope_theta);
}

/// The bytes of a slot may be as many in two formats that mean other numbers by them.
Status check_same_format(const CacheFormat& format, const Header& h) {
  Header own;
  set_format(own, format);
  if (h.dtype == own.dtype && h.scale_granularity == own.scale_granularity &&
      h.rope_pairing == own.rope_pairing && h.rope_dims == own.rope_dims &&
      h.rope_theta == own.rope_theta) {
    return {};
  }
  return refused("restore: saved in another format: expected ", format_text(own), ", got ",
                 format_text(h));
}

Status check_header(const PagedCacheConfig& c, const Store& store, const Header& h,
                    std::span<const std::byte> bytes) {
  const SlotLayout layout = store.layout();
  if (h.magic != kMagic) return refused("restore: these are no saved bytes of kvattn");
  if (h.key_bytes != layout.stored_key || h.value_bytes != layout.stored_value ||
      h.scales != layout.scales || h.groups != std::ssize(c.groups) || h.layers != layers_of(c)) {
    return refused("restore: saved by another model: expected ", layers_of(c), " layers in ",
                   c.groups.size(), " groups with ", layout.stored_key, " and ",
                   layout.stored_value, " bytes of K and V and ", layout.scales,
                   " scales of each, got ", h.layers, ", ", h.groups, ", ", h.key_bytes, ", ",
                   h.value_bytes, ", ", h.scales);
  }
  KVATTN_RETURN_IF_ERROR(check_same_format(store.format(), h));
  if (h.length < 0 || h.length > c.context_limit.value) {
    return refused("restore: expected 0 to ", c.context_limit, " slots, got ", h.length);
  }
  for (int32_t g = 0; g < std::ssize(c.groups); ++g) {
    const int64_t window = c.groups[g].window_left;
    const int64_t needed = window < 0 ? 0 : std::max<int64_t>(h.length - 1 - window, 0);
    if (h.kept_from[g] < 0 || h.kept_from[g] > needed / c.page_slots * c.page_slots) {
      return refused("restore: group ", g, ": expected slots from ", needed, " on, got ",
                     h.kept_from[g]);
    }
  }
  const auto size = static_cast<uint64_t>(bytes_of(c, h));
  if (h.bytes != size || bytes.size() != size) {
    return refused("restore: expected ", size, " bytes, got ", bytes.size());
  }
  if (checksum(h, bytes) != h.checksum) {
    return refused("restore: the checksum does not match");
  }
  return {};
}

/// The scales of saved slots.
class SavedScales {
 public:
  SavedScales(const CacheFormat& format, const Header& h, std::span<const std::byte> bytes)
      : format_(format), header_(h), bytes_(bytes) {}

  /// Of the slot whose bytes begin at `offset`. `follows`: those of a slot of the same page, layer
  /// and request lie right before them.
  Status check(int32_t layer, int64_t slot, int64_t offset, bool follows) const {
    for (const bool of_value : {false, true}) {
      const Role role{of_value ? "V" : "K", of_value ? header_.scales : 0,
                      of_value ? format_.value_scales : format_.key_scales};
      const Status status = format_.has_slot_scales() ? check_slot(role, offset, follows)
                                                      : check_constant(role, layer, offset);
      if (!status.ok()) {
        return refused("restore: layer ", layer, ", slot ", slot, ": ", status.text());
      }
    }
    return {};
  }

 private:
  struct Role {
    const char* name;
    int64_t first;  // of the slot's scales
    const std::vector<float>& constant;
  };
  float at(const Role& role, int64_t offset, int64_t head) const {
    float scale = 0;
    const int64_t index = role.first + head;
    std::memcpy(&scale,
                bytes_.data() + offset + header_.key_bytes + header_.value_bytes +
                    index * int64_t{sizeof scale},
                sizeof scale);
    return scale;
  }
  Status check_constant(const Role& role, int32_t layer, int64_t offset) const {
    for (int64_t head = 0; head < header_.scales; ++head) {
      const float own = role.constant[layer * header_.scales + head], got = at(role, offset, head);
      if (got != own) {
        return refused("expected the scales of this model, for ", role.name, " of head ", head, " ",
                       own, ", got ", got);
      }
    }
    return {};
  }
  Status check_slot(const Role& role, int64_t offset, bool follows) const {
    const float first = at(role, offset, 0);
    if (!std::isfinite(first) || first == 0) {
      return refused("expected a finite scale of ", role.name, " other than 0, got ", first);
    }
    for (int64_t head = 1; head < header_.scales; ++head) {
      if (at(role, offset, head) == first) continue;
      return refused("expected one scale of ", role.name, " for all heads, got ", first, " and ",
                     at(role, offset, head));
    }
    if (format_.scales != ScaleGranularity::kPage || !follows) return {};
    const float before = at(role, offset - slot_bytes(header_), 0);
    if (before == first) return {};
    return refused("expected one scale of ", role.name, " for all slots of a page, got ", before,
                   " and ", first);
  }

  const CacheFormat& format_;
  const Header& header_;
  std::span<const std::byte> bytes_;
};

Status check_scales(const PagedCacheConfig& c, const CacheFormat& format, const Header& h,
                    std::span<const std::byte> bytes) {
  if (h.scales == 0) return {};
  const SavedScales scales(format, h, bytes);
  return each_slot(c, h, [&](int32_t g, int32_t layer, int64_t slot, int64_t offset) {
    return scales.check(layer, slot, offset, slot > h.kept_from[g] && slot % c.page_slots != 0);
  });
}

}  // namespace

StatusOr<std::vector<std::byte>> Engine::save(RequestId request) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  StatusOr<Handle> handle = target_.cache.find(request);
  if (!handle.ok()) return handle.status();
  if (target_.cache.state(*handle) != RequestState::kActive) {
    return refused("save: request ", index_of(request), " is preempted; expected an active one");
  }
  KVATTN_RETURN_IF_ERROR(check_no_branches("save", request));
  const PagedCacheConfig& c = target_.cache.config();
  const SlotLayout layout = target_.store->layout();
  Header h{.side_input = index_of(target_.cache.side_input(*handle)),
           .position_offset = handle->position_offset,
           .length = handle->length.value,
           .key_bytes = layout.stored_key,
           .value_bytes = layout.stored_value,
           .scales = layout.scales,
           .groups = std::ssize(c.groups),
           .layers = layers_of(c)};
  set_format(h, target_.store->format());
  for (int32_t g = 0; g < std::ssize(c.groups); ++g) {
    h.kept_from[g] = target_.cache.kept_from(*handle, Group{g}).value;
  }
  std::vector<std::byte> bytes(bytes_of(c, h));
  const auto tokens = std::as_bytes(target_.cache.tokens(*handle));
  std::ranges::copy(tokens, bytes.begin() + sizeof h);
  KVATTN_RETURN_IF_ERROR(
      broken(each_slot(c, h, [&](int32_t g, int32_t layer, int64_t slot, int64_t offset) {
        const Page page = target_.cache.table(*handle, Group{g})[slot / c.page_slots];
        return target_.store->read({.page = page, .slot = slot % c.page_slots, .layer = layer},
                                   parts_of<SlotBytes>(h, bytes.data() + offset));
      })));
  h.bytes = bytes.size();
  h.checksum = checksum(h, bytes);
  std::memcpy(bytes.data(), &h, sizeof h);
  return bytes;
}

StatusOr<Handle> Engine::restore(const Admission& admission, std::span<const std::byte> bytes) {
  KVATTN_RETURN_IF_ERROR(begin_operation());
  const PagedCacheConfig& c = target_.cache.config();
  Header h;
  if (bytes.size() < sizeof h) {
    return refused("restore: expected ", sizeof h, " bytes or more, got ", bytes.size());
  }
  std::memcpy(&h, bytes.data(), sizeof h);
  KVATTN_RETURN_IF_ERROR(check_header(c, *target_.store, h, bytes));
  KVATTN_RETURN_IF_ERROR(check_scales(c, target_.store->format(), h, bytes));
  if (h.side_input != index_of(admission.side_input) ||
      h.position_offset != admission.position_offset) {
    return refused("restore: saved with side input ", h.side_input, " and offset ",
                   h.position_offset, ", asked for with ", index_of(admission.side_input), " and ",
                   admission.position_offset);
  }
  std::vector<Token> tokens(h.length);
  const auto words = bytes.subspan(sizeof h, tokens.size() * sizeof(Token));
  std::copy(words.begin(), words.end(), std::as_writable_bytes(std::span(tokens)).begin());
  StatusOr<Handle> handle = target_.cache.restore({.admission = admission, .tokens = tokens});
  if (!handle.ok()) return handle;
  KVATTN_RETURN_IF_ERROR(
      broken(each_slot(c, h, [&](int32_t g, int32_t layer, int64_t slot, int64_t offset) {
        const Page page = target_.cache.table(*handle, Group{g})[slot / c.page_slots];
        if (page == kNoPage) return Status();  // no later query sees it
        return target_.store->write({.page = page, .slot = slot % c.page_slots, .layer = layer},
                                    parts_of<ConstSlotBytes>(h, bytes.data() + offset));
      })));
  if (draft_) {
    Admission empty = admission;
    empty.prompt = {};
    StatusOr<Handle> draft = draft_->cache.admit(empty);
    if (!draft.ok()) return broken(draft.status());
  }
  return handle;
}

}  // namespace kvattn
