// Purpose: an Engine in this process, behind the C interface of a plugin.
// Contract: the plugin is trusted not to crash; it runs in a worker, or is our own under test. The
// case and the level must outlive the engine. Everything that the plugin returns is copied.
// Example:  KV_ASSIGN_OR_RETURN(auto engine, LocalEngine::create(*plugin->engine, c));
#pragma once

#include <map>
#include <memory>

#include "harness/case/case.h"
#include "harness/engine/content.h"
#include "harness/engine/engine.h"
#include "harness/engine/told_tokens.h"
#include "harness/plugin/kverify_engine.h"

namespace kv {

class LocalEngine final : public Engine {
 public:
  /// Unsupported when the engine does not offer what the case asks for, or how to look at it:
  /// snapshot, one of read_slot and read_slots, and with a prefix cache one of read_page and
  /// read_page_slots.
  static Result<std::unique_ptr<LocalEngine>> create(const kv_engine_level& level, const Case& c);
  ~LocalEngine() override;

  Answer perform(const Call& call) override;
  Result<EngineState> snapshot(CacheKind cache) override;
  std::vector<SlotBytes> read(CacheKind cache, std::span<const SlotPlace> places) override;
  StepOutputs take_outputs(uint64_t step) override;
  bool shift_turns() const override;

 private:
  LocalEngine(const kv_engine_level& level, const Case& c);

  kv_status call_engine(const call::Admit& admit, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Step& step, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Complete& complete, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Fork& fork, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Reorder& reorder, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Truncate& truncate, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Shift& shift, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Cancel& cancel, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Finish& finish, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Preempt& preempt, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Resume& resume, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Evict& evict, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Defrag&, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Save& save, Answer& answer, kv_error& error);
  kv_status call_engine(const call::Restore& restore, Answer& answer, kv_error& error);
  kv_status call_engine(const call::FailAllocation& fail, Answer& answer, kv_error& error);

  SlotBytes read_place(uint32_t cache, const SlotPlace& place);
  kv_status read_at_once(uint32_t cache, const SlotPlace& place, const kv_slot_bytes& out);
  kv_status read_one(uint32_t cache, const SlotPlace& place, const kv_slot_bytes& out);

  StepOutputs room_for(const call::Step& step) const;
  static kv_status fill_qkv(void* harness, const kv_token* token, void* q, void* k, void* v);
  static kv_status fill_scales(void* harness, const kv_token* token, float* key, float* value);

  const kv_engine_level& level_;
  const Case& case_;
  Content content_;
  kv_engine* engine_ = nullptr;
  uint64_t page_tokens_ = 0;  // numbered so far
  KnownPrefixes known_[2] = {KnownPrefixes(page_tokens_), KnownPrefixes(page_tokens_)};
  ToldTokens told_;                          // of the step that is being made
  std::map<uint64_t, StepOutputs> outputs_;  // of each step that asked, until they are taken
};

}  // namespace kv
