// The engine level of both plugins, as kverify uses it. With attention, outputs are compared too.
#include <cuda_runtime_api.h>

#include "impl/plugin/engine_client_test.h"

namespace kvattn {
namespace {

using namespace kvattn::testing;

class EveryPlugin : public ::testing::TestWithParam<const char*> {
 protected:
  const kv_plugin& plugin() const { return load_plugin(GetParam()); }
  // Also what makes this program need the CPU device's runtime, which the plugin then finds.
  void TearDown() override { EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess); }
};
INSTANTIATE_TEST_SUITE_P(Engine, EveryPlugin,
                         ::testing::Values("libkvattn_host_plugin.so", "libkvattn_plugin.so"),
                         [](const auto& info) {
                           return std::string(info.param).find("host") == std::string::npos
                                      ? "cuda"
                                      : "host";
                         });

// A prompt in chunks, a second that joins and shares, decode of both, in every layout.
TEST_P(EveryPlugin, BatchesContinuously) {
  for (uint32_t layout : {KV_LAYOUT_RAGGED, KV_LAYOUT_PAD_LEFT, KV_LAYOUT_PAD_RIGHT}) {
    Client c(plugin(), {});
    c.admit(1, 13);
    c.step({{1, 7, 7}}, {.layout = layout});
    c.step({{1, 6, 6}}, {.layout = layout});
    EXPECT_EQ(c.admit(2, 14), 12u);
    EXPECT_EQ(c.admit(3, 14, 9), 0u);  // another side input
    c.step({{1, 1, 1}, {2, 2, 3}, {3, 14, 5}}, {.layout = layout});
    c.step({{3, 1, 1}, {2, 1, 1}, {1, 1, 1}}, {.layout = layout});
    c.check();
    EXPECT_GT(c.snapshot().counters.hit_pages, 0u);
  }
}

TEST_P(EveryPlugin, KeepsBeamsApart) {
  Client c(plugin(), {});
  c.admit(1, 6);
  c.step({{1, 6, 1}});
  c.fork(1, 2);
  c.fork(1, 3);
  c.step({{1, 1, 1}, {2, 1, 1}, {3, 1, 1}});
  c.reorder({1, 2, 3}, {2, 3, 1});
  c.check();
  c.step({{1, 1, 1}, {2, 1, 1}, {3, 1, 1}});
  c.reorder({1, 2, 3}, {3, 3, 1});
  c.step({{3, 2, 2}, {2, 1, 1}, {1, 1, 1}});
  c.check();
  EXPECT_GT(c.snapshot().counters.copied_slots, 0u);
}

TEST_P(EveryPlugin, VerifiesDraftsOfAnotherModel) {
  Client c(plugin(), {.draft_layers = 1});
  c.admit(1, 5);
  c.step({{1, 5, 1}});
  c.step({{1, 5, 1}}, {.draft = true});
  for (uint64_t accepted = 0; accepted <= 3; ++accepted) {
    const uint64_t length = c.length(1);
    for (int i = 0; i < 3; ++i) c.step({{1, 1, 1}}, {.draft = true});
    c.step({{1, 4, 4, 3}});
    c.check();
    c.truncate(1, length + 1 + accepted);
    c.check();
    if (accepted == 3) break;
  }
}

TEST_P(EveryPlugin, LetsWindowsSlide) {
  Client c(plugin(), {.windows = {-1, 5}});
  c.admit(1, 20);
  c.step({{1, 20, 20}});
  c.step({{1, 1, 3}});
  c.check();
  EXPECT_GT(c.snapshot().counters.expired_pages, 0u);
  EXPECT_EQ(c.admit(2, 18), 16u);
  c.step({{2, 2, 2}, {1, 1, 1}});
  c.check();
}

TEST_P(EveryPlugin, ShiftsSwapsSavesAndDefragments) {
  Client c(plugin(), {});
  c.admit(1, 10);
  c.step({{1, 10, 1}});
  c.admit(2, 3);
  c.step({{2, 3, 1}, {1, 1, 1}});
  c.shift(1, 2, 5);
  c.check();
  c.preempt(1, true);
  c.step({{2, 5, 2}});
  c.resume(1);
  c.check();
  const std::vector<std::byte> saved = c.save(2);
  ASSERT_EQ(c.try_restore(3, saved, 2), KV_OK) << c.why.text;
  c.check();
  c.cancel(1);
  ASSERT_EQ(c.api().defrag(c.engine(), &c.why), KV_OK) << c.why.text;
  c.step({{3, 1, 1}, {2, 1, 1}});
  c.preempt(2, false);
  c.resume(2);
  EXPECT_LT(c.length(2), 9u);
  c.step({{2, 9 - static_cast<uint32_t>(c.length(2)), 1}});
  c.check();
}

TEST_P(EveryPlugin, RefusesSpoiltSavedBytes) {
  Client c(plugin(), {});
  c.admit(1, 6);
  c.step({{1, 6, 1}});
  const std::vector<std::byte> saved = c.save(1);
  for (size_t at = 0; at < saved.size(); at += at < 200 ? 1 : 37) {
    std::vector<std::byte> bad = saved;
    bad[at] ^= std::byte{1};
    EXPECT_EQ(c.try_restore(2, bad, 1), KV_REFUSED) << "byte " << at;
  }
  for (size_t size : {size_t{0}, size_t{100}, saved.size() - 1}) {
    EXPECT_EQ(c.try_restore(2, {saved.begin(), saved.begin() + static_cast<int64_t>(size)}, 1),
              KV_REFUSED);
  }
  EXPECT_EQ(c.snapshot().request_count, 1u);
}

TEST_P(EveryPlugin, RunsAheadOfItsSteps) {
  Client c(plugin(), {.async_depth = 1});
  c.admit(1, 8);
  c.step({{1, 8, 1}});
  EXPECT_EQ(c.snapshot().steps_in_flight_count, 1u);
  c.admit(2, 4);
  c.step({{1, 1, 1}, {2, 4, 1}});
  EXPECT_EQ(c.snapshot().steps_in_flight_count, 1u);
  c.cancel(1);
  EXPECT_GT(c.snapshot().fenced_count, 0u);
  c.step({{2, 1, 1}});
  c.check();
  EXPECT_EQ(c.snapshot().steps_in_flight_count, 0u);
  EXPECT_EQ(c.snapshot().fenced_count, 0u);
}

TEST_P(EveryPlugin, RefusesHostileRows) {
  Client c(plugin(), {});
  c.admit(1, 5);
  c.step({{1, 5, 1}});
  c.admit(2, 5);
  const uint64_t token = 7;
  const kv_step_row good = {.struct_bytes = sizeof good,
                            .request = 1,
                            .handle = c.handle(1),
                            .length = 5,
                            .append_tokens = 1,
                            .query_tokens = 1,
                            .dtype = {kDLFloat, 32, 1},
                            .tokens = &token,
                            .histories = &token};
  using Spoil = void (*)(kv_step_row&);
  for (Spoil spoil :
       {Spoil([](kv_step_row& r) { r.length = 4; }), Spoil([](kv_step_row& r) { r.length = 6; }),
        Spoil([](kv_step_row& r) { r.length = ~uint64_t{0}; }),
        Spoil([](kv_step_row& r) { r.handle += 1; }), Spoil([](kv_step_row& r) { r.handle = 0; }),
        Spoil([](kv_step_row& r) { r.request = 9; }),
        Spoil([](kv_step_row& r) { r.query_tokens = 7; }),
        Spoil([](kv_step_row& r) { r.speculative_tokens = 2; }),
        Spoil([](kv_step_row& r) { r.dtype.bits = 16; }), Spoil([](kv_step_row& r) {
          r.dtype = {kDLBfloat, 8, 1};
        })}) {
    kv_step_row bad = good;
    spoil(bad);
    EXPECT_EQ(c.try_step({bad}), KV_REFUSED) << c.why.text;
  }
  c.cancel(2);
  c.check();
}

}  // namespace
}  // namespace kvattn
