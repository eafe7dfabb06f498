#include "harness/engine/engine_service.h"

#include "harness/case/json.h"

namespace kv {

std::vector<std::byte> EngineService::serve(std::span<const std::byte> payload) {
  EngineReply reply;
  const auto request = decode_engine_request(payload);
  if (!request) {
    reply.error = environment_error("a malformed request to the worker");
  } else if (engine_ == nullptr && !std::holds_alternative<request::Create>(*request)) {
    reply.error = environment_error("there is no engine in the worker");
  } else {
    std::visit([&](const auto& r) { serve(r, reply); }, *request);
  }
  reply.device = device_();
  return encode(reply, told_);
}

void EngineService::serve(const request::Create& create, EngineReply& reply) {
  engine_.reset();
  told_ = {};
  if (level_ == nullptr) {
    reply.error = unsupported("the plugin offers no engine level");
    return;
  }
  auto c = parse_case(create.case_text, "case");
  if (!c.ok() || !c->engine) {
    reply.error = environment_error("the worker cannot read the case");
    return;
  }
  case_ = std::move(*c);
  auto engine = LocalEngine::create(*level_, case_);
  if (engine.ok()) {
    engine_ = std::move(*engine);
    reply.shift_turns = engine_->shift_turns();
  } else {
    reply.error = engine.error();
  }
}

void EngineService::serve(const request::Perform& perform, EngineReply& reply) {
  reply.answer = engine_->perform(perform.call);
  auto target = engine_->snapshot(CacheKind::kTarget);
  if (!target.ok()) {
    reply.error = target.error();
    return;
  }
  reply.target = std::move(*target);
  if (case_.engine->draft_layers == 0) return;
  auto draft = engine_->snapshot(CacheKind::kDraft);
  if (draft.ok()) {
    reply.draft = std::move(*draft);
  } else {
    reply.error = draft.error();
  }
}

void EngineService::serve(const request::Read& read, EngineReply& reply) {
  reply.slots = engine_->read(read.cache, read.places);
}

void EngineService::serve(const request::TakeOutputs& take, EngineReply& reply) {
  reply.outputs = engine_->take_outputs(take.step);
}

}  // namespace kv
