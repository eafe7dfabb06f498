#include "harness/engine/remote_engine.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/case/json.h"

namespace kv {
namespace {

bool is_sound(const EngineReply& reply) {
  const auto has_shape = [](const std::optional<EngineState>& state) {
    return !state || check_shape(*state).ok();
  };
  return has_shape(reply.target) && has_shape(reply.draft);
}

}  // namespace

EngineReply RemoteEngine::ask(const EngineRequest& request) {
  EngineReply reply;
  if (!worker_ended() && worker_.submit(FrameType::kEngine, encode(request))) {
    WorkerEvent event = worker_.receive();
    if (const auto* frame = std::get_if<Frame>(&event)) {
      auto decoded = decode_engine_reply(frame->payload, heard_);
      if (frame->type == FrameType::kEnd && decoded && is_sound(*decoded)) {
        note(decoded->device);
        return std::move(*decoded);
      }
      ending_ = "damaged what it sent";
      worker_.stop();
    } else {
      const Ending& ending = std::get<Ending>(event);
      ending_ = ending.message + (ending.output.empty() ? "" : ": " + ending.output);
    }
  }
  if (ending_.empty()) ending_ = "is gone";
  reply.error = environment_error("the worker " + ending_);
  reply.answer.status = CallStatus::kFailed;
  reply.answer.message = "the worker " + ending_;
  return reply;
}

void RemoteEngine::note(DeviceReport& report) {
  std::ranges::move(report.findings, std::back_inserter(device_.findings));
  if (device_.unsupported.empty()) device_.unsupported = std::move(report.unsupported);
}

Result<void> RemoteEngine::create(const Case& c) {
  heard_ = {};
  const EngineReply reply = ask(request::Create{case_to_json(c)});
  // A fault of the device weighs more than what it does not know.
  const bool is_unknown = device_.findings.empty() && !device_.unsupported.empty();
  if (reply.error && is_unknown) return unsupported(device_.unsupported);
  if (reply.error) return *reply.error;
  shift_turns_ = reply.shift_turns != 0;
  return {};
}

Answer RemoteEngine::perform(const Call& call) {
  last_ = ask(request::Perform{call});
  return last_.answer;
}

Result<EngineState> RemoteEngine::snapshot(CacheKind cache) {
  if (last_.error) return *last_.error;
  auto& state = cache == CacheKind::kTarget ? last_.target : last_.draft;
  if (!state) return bad_input("snapshot: there is none");
  return *std::exchange(state, std::nullopt);
}

std::vector<SlotBytes> RemoteEngine::read(CacheKind cache, std::span<const SlotPlace> places) {
  if (places.empty()) return {};
  return ask(request::Read{cache, {places.begin(), places.end()}}).slots;
}

StepOutputs RemoteEngine::take_outputs(uint64_t step) {
  return ask(request::TakeOutputs{step}).outputs;
}

DeviceReport RemoteEngine::take_device_report() { return std::exchange(device_, {}); }

}  // namespace kv
