// Purpose: the engine level as kverify uses it, for kvattn's own tests: operations, what each slot
// should hold, and what attention over it should give, from the definition, in double.
// Contract: Q, K and V of a token are a hash of (its history, position, layer, draft). Operations
// must succeed; try_* hand on the status. check() reads every kept slot of every request.
// Example:  Client c(plugin, {.async_depth = 1}); c.admit(1, 9); c.step({{1, 9, 1}}); c.check();
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "harness/plugin/kverify_engine.h"

namespace kvattn::testing {

constexpr uint32_t kQueryHeads = 4, kKvHeads = 2, kHeadDim = 8;
constexpr float kScale = 0.25f;

/// One of those that the build has made, by the name of its file.
const kv_plugin& load_plugin(const std::string& file);

struct ClientOptions {
  uint32_t pages = 32, host_pages = 16, draft_layers = 0, async_depth = 0;
  std::vector<int64_t> windows = {-1};  // one group of two layers for each
  double overcommit = 8;
};
/// Appends `append` tokens, asks for `queries` of the last slots.
struct ClientRow {
  uint32_t request;
  uint32_t append, queries;
  uint32_t speculative = 0;
};
struct ClientStep {
  bool draft = false;
  uint32_t layout = KV_LAYOUT_RAGGED;
};

class Client {
 public:
  Client(const kv_plugin& plugin, const ClientOptions& options);
  ~Client() { api_.destroy(engine_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// A prompt whose first `shared` tokens are those of every such prompt.
  uint64_t admit(uint32_t id, uint32_t shared, uint64_t side_input = 0);
  void step(const std::vector<ClientRow>& rows, const ClientStep& how = {});
  kv_status try_step(const std::vector<kv_step_row>& rows, const ClientStep& how = {});
  void fork(uint32_t parent, uint32_t child);
  void reorder(std::vector<uint32_t> beams, std::vector<uint32_t> sources);
  void truncate(uint32_t id, uint64_t length);
  void shift(uint32_t id, uint64_t begin, uint64_t end);
  void cancel(uint32_t id);
  void preempt(uint32_t id, bool swap);
  void resume(uint32_t id);
  std::vector<std::byte> save(uint32_t id);
  kv_status try_restore(uint32_t id, const std::vector<std::byte>& bytes, uint32_t like);

  void complete_all();
  void check();
  kv_snapshot snapshot(bool draft = false);
  uint64_t length(uint32_t id) const { return requests_.at(id).slots.size(); }
  uint64_t handle(uint32_t id) const { return requests_.at(id).handle; }
  const kv_engine_level& api() const { return api_; }
  kv_engine* engine() { return engine_; }
  kv_error why = {.struct_bytes = sizeof(kv_error), .text = ""};

 private:
  struct Slot {
    uint64_t token, history;
    int64_t position;
  };
  struct Request {
    uint64_t handle = 0, side_input = 0;
    std::vector<Slot> slots, draft;
    std::vector<Slot> prompt;  // what comes next, as far as it is known
  };
  struct Output {
    std::vector<std::vector<float>> output, lse;  // [layer]
    std::vector<std::vector<Slot>> seen;          // [query] slots up to its own
    bool draft = false;
  };
  static kv_status fill(void* self, const kv_token* token, void* q, void* k, void* v);
  static float element(const Slot& slot, uint32_t layer, bool draft, uint32_t role, uint32_t i);
  void ok(kv_status status) { ASSERT_EQ(status, KV_OK) << why.text; }
  Slot next_slot(const std::vector<Slot>& before, uint64_t side_input, uint64_t token) const;
  void check_cache(bool draft);
  void check_output(const Output& out);
  void check_query(const Output& out, size_t query, uint32_t layer, uint32_t head);
  uint32_t layers(bool draft) const {
    return draft ? draft_layers_ : 2 * static_cast<uint32_t>(windows_.size());
  }

  const kv_engine_level& api_;
  kv_engine* engine_ = nullptr;
  bool attends_;
  uint32_t draft_layers_;
  std::vector<int64_t> windows_;
  std::map<uint32_t, Request> requests_;
  std::map<uint64_t, std::unique_ptr<Output>> flying_;
  uint64_t made_up_ = 1000;
};

}  // namespace kvattn::testing
