// Purpose: a decoder over an engine with its own cache: token sequences in, logits out.
// Contract: the engine is one in this process (a kv_engine_level, with attention). Every layer's Q,
// K and V are made when the engine asks for them, from what it gave for the layer before, at the
// position that it says. A call that the engine refuses
// throws EngineRefusal. Work is counted where it is asked for. Example:
//   EngineDecoder d(*level, {.layers = 2});  d.admit(0, prompt);
//   const auto logits = d.step({{.request = 0, .append = prompt}});  // [row][token]
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/plugin/kverify_engine.h"
#include "properties/decoder/model.h"

namespace kv::decoder {

struct DecoderOptions {
  uint32_t layers = 2, draft_layers = 1;
  uint64_t seed = 1;  // of the weights; the draft model's are others
  uint32_t page_slots = 4, pages = 256, context_limit = 128, step_tokens_max = 128;
  uint32_t requests = 8;
  bool prefix_cache = false;
};

class EngineRefusal : public std::runtime_error {
 public:
  EngineRefusal(kv_status status, const std::string& what)
      : std::runtime_error(what), status(status) {}
  kv_status status;
};

/// Of the target model.
struct Work {
  uint64_t projected = 0;  // tokens whose K and V were made, in each layer
  uint64_t products = 0;   // of a query with a key that it sees, for each head and layer
  uint64_t steps = 0;
};

/// Appends tokens and gives the logits of each; of the last token alone when there are none.
struct DecoderRow {
  uint32_t request = 0;
  std::vector<Token> append = {};
  uint32_t speculative = 0;
  std::vector<int32_t> parents = {};  // of a tree
};
using RowLogits = std::vector<Logits>;  // [token]

class EngineDecoder {
 public:
  EngineDecoder(const kv_engine_level& level, const DecoderOptions& options);
  ~EngineDecoder();
  EngineDecoder(const EngineDecoder&) = delete;
  EngineDecoder& operator=(const EngineDecoder&) = delete;

  /// Nothing is appended yet, but for what the prefix cache has: the slots that are there.
  uint64_t admit(uint32_t request, const std::vector<Token>& prompt);
  std::vector<RowLogits> step(const std::vector<DecoderRow>& rows, bool draft = false);
  void fork(uint32_t parent, uint32_t child);
  void reorder(const std::vector<uint32_t>& beams, const std::vector<uint32_t>& sources);
  void truncate(uint32_t request, uint64_t length);
  void cancel(uint32_t request);

  /// Tokens in the target cache.
  const std::vector<Token>& tokens(uint32_t request) const;
  uint64_t draft_length(uint32_t request) const;
  const Work& work() const { return work_; }

 private:
  struct Held {
    std::vector<Token> tokens;
    std::vector<uint64_t> paths;  // identity of each prefix
  };
  struct Request {
    uint64_t handle = 0;
    Held target, draft;
  };
  /// A token of the step in flight.
  struct Active {
    Token token = 0;
    uint64_t row = 0;    // of the outputs
    uint64_t depth = 0;  // tokens before it that it sees
    uint32_t next_layer = 0;
    Hidden x = {};  // below next_layer
  };

  static kv_status fill(void* self, const kv_token* token, void* q, void* k, void* v);
  void check(kv_status status, const char* what) const;
  void call_engine(const std::vector<DecoderRow>& rows, const std::vector<Held>& after);
  void extend(Held& held, const DecoderRow& row) const;
  void activate(const DecoderRow& row, const Held& held);
  void advance(Active& active, uint32_t layer);
  const Model& model() const { return is_draft_ ? draft_ : target_; }
  Request& at(uint32_t request);

  const kv_engine_level& level_;
  DecoderOptions options_;
  Model target_, draft_;
  kv_engine* engine_ = nullptr;
  std::map<uint32_t, Request> requests_;
  bool is_draft_ = false;
  std::map<std::pair<uint32_t, uint64_t>, Active> active_;  // by request and path
  std::vector<std::vector<uint16_t>> outputs_;              // [layer][row, kWidth]
  uint64_t output_rows_ = 0;
  Work work_;
  mutable kv_error why_ = {.struct_bytes = sizeof(kv_error), .text = ""};
};

}  // namespace kv::decoder
