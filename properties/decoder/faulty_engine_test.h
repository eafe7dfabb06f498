// Purpose: an engine with one bug, between a decoder and a sound engine: what the statements about
// whole models must find.
// Contract: one at a time in a process, for the plain C functions have nowhere else to keep it.
// Example:  FaultyEngine faulty(*level, Fault::kStaleAfterRollback);
//           EngineDecoder d(faulty.level(), {});
#pragma once

#include <array>
#include <cstring>
#include <map>
#include <tuple>
#include <vector>

#include "harness/plugin/kverify_engine.h"
#include "properties/decoder/model.h"

namespace kv::decoder {

enum class Fault {
  kNone,
  kKeyOfTokenBefore,      // a decode step appends the key of the token before
  kSecondChunkOffByOne,   // positions of every chunk but the first are one too large
  kQueryOfRowBefore,      // in a batch a request attends with the query of the row before it
  kStaleAfterRollback,    // the first slot after a rollback keeps the rejected token
  kStaleDraft,            // the same in the draft cache
  kTokensReorderedAlone,  // reorder moves no page
  kPositionAfterHit,      // positions after a prefix hit are one too large
  kTreeAsChain,           // a token of a tree sees what lies in front of it, not its path
};

class FaultyEngine {
 public:
  FaultyEngine(const kv_engine_level& real, Fault fault)
      : level_(real), real_(real), fault_(fault) {
    self_ = this;
    level_.create = create;
    level_.admit = admit;
    level_.step = step;
    level_.truncate = truncate;
    if (fault == Fault::kTokensReorderedAlone) {
      level_.reorder = [](kv_engine*, const uint32_t*, const uint32_t*, uint32_t, kv_error*) {
        return KV_OK;
      };
    }
  }
  ~FaultyEngine() { self_ = nullptr; }
  FaultyEngine(const FaultyEngine&) = delete;
  FaultyEngine& operator=(const FaultyEngine&) = delete;
  const kv_engine_level& level() const { return level_; }

 private:
  struct Row {
    uint64_t length = 0, append = 0;
    bool after_hit = false;
  };
  /// Request, draft, position, layer.
  using Place = std::tuple<uint32_t, uint32_t, int64_t, uint32_t>;
  struct Bytes {
    char key[2 * kHeadDim * kKvHeads], value[2 * kHeadDim * kKvHeads];
  };

  static kv_status create(const kv_engine_config* config, kv_engine** out, kv_error* why) {
    self_->fill_ = config->fill_qkv;
    self_->harness_ = config->harness;
    kv_engine_config mine = *config;
    mine.fill_qkv = fill;
    mine.harness = nullptr;
    return self_->real_.create(&mine, out, why);
  }
  static kv_status admit(kv_engine* e, const kv_admission* a, kv_admitted* out, kv_error* why) {
    const kv_status status = self_->real_.admit(e, a, out, why);
    self_->hits_[a->request] = out->length > 0;
    return status;
  }
  static kv_status step(kv_engine* e, const kv_step* s, uint64_t* number, kv_error* why) {
    self_->rows_.clear();
    for (uint32_t i = 0; i < s->row_count; ++i) {
      const kv_step_row& row = s->rows[i];
      self_->rows_[row.request] = {row.length, row.append_tokens, self_->hits_[row.request]};
    }
    std::vector<kv_step_row> rows(s->rows, s->rows + s->row_count);
    kv_step mine = *s;
    if (self_->fault_ == Fault::kTreeAsChain) {
      for (kv_step_row& row : rows) row.tree_parents = nullptr;
      mine.rows = rows.data();
    }
    const kv_status status = self_->real_.step(e, &mine, number, why);
    for (const auto& [request, row] : self_->rows_) self_->hits_[request] = false;
    if (status == KV_OK) self_->stale_[s->draft].clear();
    return status;
  }
  static kv_status truncate(kv_engine* e, uint32_t request, uint64_t length, kv_error* why) {
    for (auto& stale : self_->stale_) stale[request] = static_cast<int64_t>(length);
    return self_->real_.truncate(e, request, length, why);
  }

  static kv_status fill(void*, const kv_token* token, void* q, void* k, void* v) {
    return self_->fill_one(*token, q, k, v);
  }
  kv_status fill_one(kv_token token, void* q, void* k, void* v) {
    const Row& row = rows_[token.request];
    const int64_t place = token.position;
    const bool late = (fault_ == Fault::kSecondChunkOffByOne && row.length > 0 && row.append > 1) ||
                      (fault_ == Fault::kPositionAfterHit && row.after_hit);
    if (late) ++token.position;
    const kv_status status = fill_(harness_, &token, q, k, v);
    if (status != KV_OK) return status;
    if (q != nullptr && fault_ == Fault::kQueryOfRowBefore) mix_queries(token, q);
    if (k == nullptr || v == nullptr) return status;
    const Place at(token.request, token.draft, place, token.layer);
    const Place before(token.request, token.draft, place - 1, token.layer);
    const auto stale = stale_[token.draft].find(token.request);
    const Fault stale_fault = token.draft ? Fault::kStaleDraft : Fault::kStaleAfterRollback;
    const bool is_stale =
        fault_ == stale_fault && stale != stale_[token.draft].end() && stale->second == place;
    if (is_stale && stored_.contains(at)) {
      std::memcpy(k, stored_[at].key, sizeof(Bytes::key));
      std::memcpy(v, stored_[at].value, sizeof(Bytes::value));
    }
    if (fault_ == Fault::kKeyOfTokenBefore && row.append == 1 && stored_.contains(before)) {
      std::memcpy(k, stored_[before].key, sizeof(Bytes::key));
    }
    std::memcpy(stored_[at].key, k, sizeof(Bytes::key));
    std::memcpy(stored_[at].value, v, sizeof(Bytes::value));
    return status;
  }
  void mix_queries(const kv_token& token, void* q) {
    std::vector<char> own(2 * kWidth);
    std::memcpy(own.data(), q, own.size());
    const bool other = !last_query_.empty() && last_request_ != token.request;
    if (other && last_layer_ == token.layer) std::memcpy(q, last_query_.data(), own.size());
    last_query_ = own;
    last_request_ = token.request;
    last_layer_ = token.layer;
  }

  static inline FaultyEngine* self_ = nullptr;
  kv_engine_level level_;
  const kv_engine_level& real_;
  Fault fault_;
  kv_fill_qkv fill_ = nullptr;
  void* harness_ = nullptr;
  std::map<uint32_t, Row> rows_;
  std::map<uint32_t, bool> hits_;
  std::array<std::map<uint32_t, int64_t>, 2> stale_;  // [draft]: by request, the slot
  std::map<Place, Bytes> stored_;
  std::vector<char> last_query_;
  uint32_t last_request_ = 0, last_layer_ = 0;
};

}  // namespace kv::decoder
