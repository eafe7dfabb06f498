// What restore takes at its word and what not: the scales of saved codes. Checksums are those of
// the changed bytes: it is the scale that is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kvattn/engine.h"

namespace kvattn {
namespace {

constexpr int64_t kHeads = 2, kDim = 4, kPageSlots = 4, kLength = 7;
constexpr int64_t kRow = kHeads * kDim, kSlotBytes = 2 * kRow + 2 * kHeads * int64_t{sizeof(float)};
constexpr float kScale = 0.25f;

/// Every element is 1, every token's scale kScale.
class Ones final : public Model {
 public:
  Status project(const LayerCall& call) override {
    const int64_t rows = call.batch->appended;
    const std::vector<float> ones(rows * kRow, 1), scales(rows, kScale);
    const ByteCount bytes(std::ssize(ones) * int64_t{sizeof(float)});
    KVATTN_RETURN_IF_ERROR(call.store->upload(call.tensors.key, ones.data(), bytes));
    KVATTN_RETURN_IF_ERROR(call.store->upload(call.tensors.value, ones.data(), bytes));
    if (call.tensors.key_scales == nullptr) return {};
    const ByteCount scale_bytes(rows * int64_t{sizeof(float)});
    KVATTN_RETURN_IF_ERROR(call.store->upload(call.tensors.key_scales, scales.data(), scale_bytes));
    return call.store->upload(call.tensors.value_scales, scales.data(), scale_bytes);
  }
};

/// An engine of one layer over e4m3, and what its tensors or heads have for scales.
class Server {
 public:
  Server(ScaleGranularity scales, const std::vector<float>& key, const std::vector<float>& value) {
    constexpr int64_t kGiven = kRow * int64_t{sizeof(float)};
    const PagedCacheConfig cache = {.groups = {{.layers = 1, .window_left = -1}},
                                    .pages = PageCount(8),
                                    .page_slots = kPageSlots,
                                    .page_bytes = ByteCount(kPageSlots * 2 * kRow),
                                    .dtype = DType::kE4M3,
                                    .batch_slots = 2,
                                    .requests = 2,
                                    .context_limit = SlotCount(16),
                                    .step_slots_max = SlotCount(16)};
    StoreSize size = store_size(cache, {.query = kGiven,
                                        .key = kGiven,
                                        .value = kGiven,
                                        .output = kGiven,
                                        .stored_key = kRow,
                                        .stored_value = kRow,
                                        .scales = kHeads,
                                        .query_heads = kHeads});
    size.format = {.given = DType::kF32,
                   .stored = DType::kE4M3,
                   .scales = scales,
                   .kv_heads = kHeads,
                   .head_dim = kDim,
                   .key_scales = key,
                   .value_scales = value};
    EngineParts parts{.model = &model_, .target = make_host_store(size)};
    engine_ = *Engine::create({.cache = cache}, std::move(parts));
  }
  explicit Server(ScaleGranularity scales)
      : Server(scales, std::vector<float>(kHeads, kScale), std::vector<float>(kHeads, kScale)) {}

  /// A request of kLength tokens.
  std::vector<std::byte> saved() {
    const std::vector<Token> tokens(kLength, Token{5});
    const StatusOr<Handle> handle = engine_->admit(admission(1));
    EXPECT_TRUE(handle.ok()) << handle.status().text();
    const EngineRow row = {.append = {.handle = *handle, .tokens = tokens, .dtype = DType::kE4M3}};
    const StatusOr<StepNumber> step = engine_->step({.rows = {&row, 1}});
    EXPECT_TRUE(step.ok()) << step.status().text();
    return *engine_->save(RequestId{1});
  }
  /// Why not, or "".
  std::string restore(const std::vector<std::byte>& bytes) {
    const StatusOr<Handle> handle = engine_->restore(admission(2), bytes);
    if (!handle.ok()) {
      EXPECT_EQ(handle.status().code(), StatusCode::kRefused);
      return handle.status().text();
    }
    EXPECT_TRUE(engine_->release(RequestId{2}).ok());
    return "";
  }

 private:
  static Admission admission(uint32_t id) {
    return {.request = RequestId{id}, .slots_max = SlotCount(16)};
  }
  Ones model_;
  std::unique_ptr<Engine> engine_;
};

/// With the checksum that these bytes have: FNV-1a over words, a zero in its own place.
std::vector<std::byte> resealed(std::vector<std::byte> bytes) {
  constexpr size_t kPlace = 16;
  std::memset(bytes.data() + kPlace, 0, 8);
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(8, bytes.size() - i));
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  std::memcpy(bytes.data() + kPlace, &hash, sizeof hash);
  return bytes;
}

enum class Role : uint8_t { kKey, kValue };
struct ScalePlace {
  int64_t slot;
  Role role;
  int64_t head;
};
void put_scale(std::vector<std::byte>& bytes, const ScalePlace& at, float scale) {
  const int64_t slots_behind = kLength - at.slot;
  const int64_t index = (at.role == Role::kValue ? kHeads : 0) + at.head;
  std::memcpy(bytes.data() + bytes.size() - slots_behind * kSlotBytes + 2 * kRow +
                  index * int64_t{sizeof(float)},
              &scale, sizeof scale);
}
/// Of all heads of slots [first, kLength).
std::vector<std::byte> with_scales(std::vector<std::byte> bytes, int64_t first, Role role,
                                   float scale) {
  for (int64_t slot = first; slot < kLength; ++slot) {
    for (int64_t head = 0; head < kHeads; ++head) put_scale(bytes, {slot, role, head}, scale);
  }
  return resealed(bytes);
}

void expect_says(const std::string& text, const std::string& what) {
  EXPECT_NE(text.find(what), std::string::npos) << "\"" << text << "\": \"" << what << "\"";
}

constexpr ScaleGranularity kConstant[] = {ScaleGranularity::kTensor, ScaleGranularity::kHead};
constexpr ScaleGranularity kOfSlots[] = {ScaleGranularity::kToken, ScaleGranularity::kPage};

// Fails when a lawful file is refused, or when this test seals otherwise than save does.
TEST(Saved, TakesWhatItHasSaved) {
  for (const ScaleGranularity scales : {kConstant[0], kConstant[1], kOfSlots[0], kOfSlots[1]}) {
    const std::vector<std::byte> bytes = Server(scales).saved();
    EXPECT_EQ(resealed(bytes), bytes);
    EXPECT_EQ(Server(scales).restore(bytes), "") << static_cast<int>(scales);
  }
}

// Fails when bytes of another format are read as these.
TEST(Saved, NamesItsFormat) {
  std::vector<std::byte> bytes = Server(ScaleGranularity::kToken).saved();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), 8), "KVTSAV02");
  bytes[7] = std::byte{'1'};
  expect_says(Server(ScaleGranularity::kToken).restore(resealed(bytes)), "no saved bytes");
}

// Fails when slots of as many bytes are read as other numbers, or as K turned by other angles.
TEST(Saved, RefusesAnotherFormat) {
  const std::vector<std::byte> bytes = Server(ScaleGranularity::kTensor).saved();
  constexpr size_t kFirst = 88;  // type, scales, pairs, dimensions and base of RoPE
  for (size_t field = 0; field < 5; ++field) {
    std::vector<std::byte> other = bytes;
    other[kFirst + 8 * field] ^= std::byte{1};
    expect_says(Server(ScaleGranularity::kTensor).restore(resealed(other)), "another format");
  }
}

// Fails when codes come under scales that they were not divided by: other numbers, silently.
TEST(Saved, RefusesOtherScalesOfTensorsAndHeads) {
  const std::vector<float> same(kHeads, kScale), other = {kScale, 0.5f};
  for (const ScaleGranularity scales : kConstant) {
    const std::vector<std::byte> bytes = Server(scales).saved();
    expect_says(Server(scales, other, same).restore(bytes), "scales");
    expect_says(Server(scales, same, other).restore(bytes), "scales");
    EXPECT_EQ(Server(scales, same, same).restore(bytes), "");
  }
}

// Fails when such a scale gets into the cache, where it would make what is read NaN or infinite,
// and what a page is still to get, too.
TEST(Saved, RefusesScalesThatAreNone) {
  for (const ScaleGranularity scales : kOfSlots) {
    const std::vector<std::byte> bytes = Server(scales).saved();
    for (const Role role : {Role::kKey, Role::kValue}) {
      for (const float scale : {0.0f, -0.0f, NAN, INFINITY, -INFINITY}) {
        expect_says(Server(scales).restore(with_scales(bytes, kPageSlots, role, scale)), "finite");
      }
      EXPECT_EQ(Server(scales).restore(with_scales(bytes, kPageSlots, role, 0.5f)), "");
    }
  }
}

// Fails when slots of a page are read back under other scales than they were saved with: the next
// token of the page takes that of its first slot.
TEST(Saved, RefusesTwoScalesInAPage) {
  const std::vector<std::byte> by_page = Server(ScaleGranularity::kPage).saved();
  const std::vector<std::byte> by_token = Server(ScaleGranularity::kToken).saved();
  for (const Role role : {Role::kKey, Role::kValue}) {
    expect_says(
        Server(ScaleGranularity::kPage).restore(with_scales(by_page, kLength - 1, role, 0.5f)),
        "page");
    EXPECT_EQ(
        Server(ScaleGranularity::kToken).restore(with_scales(by_token, kLength - 1, role, 0.5f)),
        "");
  }
}

// Fails when a head's scale is lost: the cache keeps one for all heads of a token.
TEST(Saved, RefusesTwoScalesInASlot) {
  for (const ScaleGranularity scales : kOfSlots) {
    std::vector<std::byte> bytes = Server(scales).saved();
    for (int64_t slot = kPageSlots; slot < kLength; ++slot) {
      put_scale(bytes, {slot, Role::kValue, kHeads - 1}, 0.5f);
    }
    expect_says(Server(scales).restore(resealed(bytes)), "heads");
  }
}

}  // namespace
}  // namespace kvattn
