// Pages in host memory: for checks of placement without a device, and for tests.
#include <algorithm>
#include <cstring>

#include "impl/engine/host_format.h"
#include "kvattn/store.h"

namespace kvattn {
namespace {

int32_t layers_max(const StoreSize& size) {
  return std::ranges::max(size.groups, {}, &LayerGroup::layers).layers;
}

/// Which group a layer belongs to, and which of the group's layers it is.
struct LayerPlace {
  int32_t group = 0, layer = 0;
};
LayerPlace place_of(const std::vector<LayerGroup>& groups, int32_t layer) {
  int32_t group = 0;
  while (layer >= groups[group].layers) layer -= groups[group++].layers;
  return {group, layer};
}

class HostStore final : public Store {
 public:
  explicit HostStore(const StoreSize& size)
      : size_(size),
        slot_scales_(size.format.has_slot_scales()),
        slot_bytes_(size.layout.stored_key + size.layout.stored_value +
                    (slot_scales_ ? int64_t{2 * sizeof(float)} : 0)),
        page_bytes_(size.page_slots * slot_bytes_ * layers_max(size)),
        pages_(size.pages.value * page_bytes_),
        host_(size.host_pages.value * page_bytes_) {
    const int64_t rows = size.batch_slots * size.step_slots_max.value;
    query_.resize(rows * size.layout.query);
    key_.resize(rows * size.layout.key);
    value_.resize(rows * size.layout.value);
    if (slot_scales_) key_scales_.resize(rows), value_scales_.resize(rows);
  }

  SlotLayout layout() const override { return size_.layout; }
  const CacheFormat& format() const override { return size_.format; }

  Status check(const Batch& batch) override {
    if (batch.attends) return unsupported("host store: attention is not offered");
    return {};
  }

  Status copy(std::span<const SlotCopy> copies) override {
    for (const SlotCopy& c : copies) {
      for (int32_t layer = 0; layer < size_.groups[index_of(c.group)].layers; ++layer) {
        std::memcpy(slot(pages_, {c.to, c.to_slot, layer}),
                    slot(pages_, {c.from, c.from_slot, layer}), c.slots * slot_bytes_);
      }
    }
    return {};
  }
  Status to_host(std::span<const HostCopy> copies) override {
    for (const HostCopy& c : copies)
      move(c, pages_, index_of(c.page), host_, index_of(c.host_page));
    return {};
  }
  Status from_host(std::span<const HostCopy> copies) override {
    for (const HostCopy& c : copies)
      move(c, host_, index_of(c.host_page), pages_, index_of(c.page));
    return {};
  }

  StatusOr<StepTensors> begin(const Batch& batch) override {
    batch_ = &batch;
    tables_.clear();
    for (const BatchRow& row : batch.rows) {  // a request may be released while the step runs
      for (size_t g = 0; g < size_.groups.size(); ++g) {
        tables_.emplace_back(row.tables[g].begin(), row.tables[g].end());
      }
    }
    StepTensors tensors{query_.data(), key_.data(), value_.data()};
    if (slot_scales_) {
      tensors.key_scales = key_scales_.data(), tensors.value_scales = value_scales_.data();
    }
    return tensors;
  }
  Status upload(void* to, const void* from, ByteCount bytes) override {
    std::memcpy(to, from, bytes.value);
    return {};
  }
  Status append(int32_t layer) override {
    const LayerPlace place = place_of(size_.groups, layer);
    for (size_t b = 0; b < batch_->rows.size(); ++b) {
      const BatchRow& row = batch_->rows[b];
      const std::vector<Page>& table = tables_[b * size_.groups.size() + place.group];
      for (int64_t i = 0; i < row.appended; ++i) {
        const int64_t at = row.first_slot + i;
        const Page page = table[at / size_.page_slots];
        if (page == kNoPage) continue;  // a window has let it go already
        std::byte* to = slot(pages_, {page, at % size_.page_slots, place.layer});
        const int64_t from = row.append_begin + i;
        if (size_.format.changes_key()) {
          convert({.at = to, .page_slot = at % size_.page_slots, .layer = layer}, from,
                  row.position(at));
          continue;
        }
        std::memcpy(to, key_.data() + from * size_.layout.key, size_.layout.key);
        std::memcpy(to + size_.layout.key, value_.data() + from * size_.layout.value,
                    size_.layout.value);
      }
    }
    return {};
  }
  Status attend(int32_t, const LayerResult&) override {
    return unsupported("host store: attention is not offered");
  }
  Status finish() override { return {}; }
  Status mark(StepNumber) override { return {}; }
  Status wait(StepNumber) override { return {}; }

  Status read(const SlotPlace& place, const SlotBytes& out) override {
    const std::byte* from = slot(pages_, in_group(place));
    auto* key = static_cast<std::byte*>(out.key);
    auto* value = static_cast<std::byte*>(out.value);
    const int64_t key_bytes = size_.layout.stored_key, value_bytes = size_.layout.stored_value;
    for (int64_t i = 0; i < place.slots; ++i, from += slot_bytes_) {
      std::memcpy(key + i * key_bytes, from, key_bytes);
      std::memcpy(value + i * value_bytes, from + key_bytes, value_bytes);
      if (out.key_scales == nullptr) continue;
      const int64_t heads = size_.format.kv_heads, scale_bytes = heads * int64_t{sizeof(float)};
      const Scales scales = scales_of(place.layer, from);
      std::memcpy(static_cast<std::byte*>(out.key_scales) + i * scale_bytes, scales.key.data(),
                  scale_bytes);
      std::memcpy(static_cast<std::byte*>(out.value_scales) + i * scale_bytes, scales.value.data(),
                  scale_bytes);
    }
    return {};
  }
  Status write(const SlotPlace& place, const ConstSlotBytes& bytes) override {
    std::byte* to = slot(pages_, in_group(place));
    std::memcpy(to, bytes.key, size_.layout.stored_key);
    std::memcpy(to + size_.layout.stored_key, bytes.value, size_.layout.stored_value);
    if (!slot_scales_) return {};
    std::memcpy(scales_at(to), bytes.key_scales, sizeof(float));
    std::memcpy(scales_at(to) + sizeof(float), bytes.value_scales, sizeof(float));
    return {};
  }

 private:
  SlotPlace in_group(const SlotPlace& place) const {
    return {place.page, place.slot, place_of(size_.groups, place.layer).layer};
  }
  /// [page][layer of the group][slot]: K, then V.
  std::byte* slot(std::vector<std::byte>& memory, const SlotPlace& place) {
    return memory.data() + index_of(place.page) * page_bytes_ +
           (place.layer * size_.page_slots + place.slot) * slot_bytes_;
  }
  void move(const HostCopy& c, std::vector<std::byte>& from, int64_t from_page,
            std::vector<std::byte>& to, int64_t to_page) {
    for (int32_t layer = 0; layer < size_.groups[index_of(c.group)].layers; ++layer) {
      std::memcpy(slot(to, {static_cast<Page>(to_page), 0, layer}),
                  slot(from, {static_cast<Page>(from_page), 0, layer}), c.slots * slot_bytes_);
    }
  }

  struct Scales {
    std::vector<float> key, value;  // of each head
  };
  /// K's and V's, where tokens or pages have scales: a slot has its page's beside it.
  template <class Byte>
  Byte* scales_at(Byte* slot) const {
    return slot + size_.layout.stored_key + size_.layout.stored_value;
  }
  /// Of the slot that lies at `at`.
  Scales scales_of(int32_t layer, const std::byte* at) const {
    const CacheFormat& format = size_.format;
    const int64_t heads = format.kv_heads, first = layer * heads;
    if (!slot_scales_) {
      return {{format.key_scales.begin() + first, format.key_scales.begin() + first + heads},
              {format.value_scales.begin() + first, format.value_scales.begin() + first + heads}};
    }
    float both[2];
    std::memcpy(both, scales_at(at), sizeof both);
    return {std::vector<float>(heads, both[0]), std::vector<float>(heads, both[1])};
  }
  struct FoundSlot {
    std::byte* at;
    int64_t page_slot;
    int32_t layer;  // of the model
  };
  /// A page has the scales of the token in its first slot.
  void put_scales(const FoundSlot& slot, int64_t row) {
    const bool takes_first = size_.format.scales == ScaleGranularity::kPage && slot.page_slot > 0;
    if (takes_first) {
      const std::byte* first = slot.at - slot.page_slot * slot_bytes_;
      std::memcpy(scales_at(slot.at), scales_at(first), 2 * sizeof(float));
      return;
    }
    std::memcpy(scales_at(slot.at), &key_scales_[row], sizeof(float));
    std::memcpy(scales_at(slot.at) + sizeof(float), &value_scales_[row], sizeof(float));
  }
  /// Row `row` of the step's tensors.
  void convert(const FoundSlot& slot, int64_t row, int64_t position) {
    std::byte* const to = slot.at;
    if (slot_scales_) put_scales(slot, row);
    Scales scales;
    if (size_.layout.scales > 0) scales = scales_of(slot.layer, to);
    const bool scaled = size_.layout.scales > 0;
    store_row(size_.format,
              {.given = key_.data() + row * size_.layout.key,
               .position = position,
               .turns = size_.format.rope.pairing != Rope::Pairing::kNone,
               .scales = scaled ? scales.key.data() : nullptr},
              to);
    store_row(size_.format,
              {.given = value_.data() + row * size_.layout.value,
               .scales = scaled ? scales.value.data() : nullptr},
              to + size_.layout.stored_key);
  }

  StoreSize size_;
  bool slot_scales_;  // tokens or pages have scales
  int64_t slot_bytes_, page_bytes_;
  std::vector<std::byte> pages_, host_, query_, key_, value_;
  std::vector<float> key_scales_, value_scales_;  // of the rows of K and V
  const Batch* batch_ = nullptr;
  std::vector<std::vector<Page>> tables_;  // [row][group] of the step
};

}  // namespace

// Behind its ancestors alone, where it is a branch of a tree.
int64_t BatchRow::position(int64_t slot) const {
  if (tree_parents.empty() || slot < first_slot) return position_offset + slot;
  int64_t depth = 0;
  for (int32_t p = tree_parents[slot - first_slot]; p >= 0; p = tree_parents[p]) ++depth;
  return position_offset + first_slot + depth;
}

StoreSize store_size(const PagedCacheConfig& config, const SlotLayout& layout) {
  return {.groups = config.groups,
          .pages = config.pages,
          .host_pages = config.host_pages,
          .page_slots = config.page_slots,
          .batch_slots = config.batch_slots,
          .context_limit = config.context_limit,
          .step_slots_max = config.step_slots_max,
          .layout = layout};
}

std::unique_ptr<Store> make_host_store(const StoreSize& size) {
  return std::make_unique<HostStore>(size);
}

}  // namespace kvattn
