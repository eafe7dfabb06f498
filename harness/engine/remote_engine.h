// Purpose: an Engine in a worker process, which may crash, hang or damage its own memory.
// Contract: a worker that ends answers KV_FAILED to everything from then on, and says why in
// ending(). create() starts a fresh engine for the case in the same worker.
// Example:  RemoteEngine engine(*worker);  KV_RETURN_IF_ERROR(engine.create(c));
#pragma once

#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/engine/engine_wire.h"
#include "harness/plugin/worker_process.h"

namespace kv {

class RemoteEngine final : public Engine {
 public:
  explicit RemoteEngine(WorkerProcess& worker) : worker_(worker) {}

  /// Unsupported when the engine does not offer what the case asks for.
  Result<void> create(const Case& c);

  Answer perform(const Call& call) override;
  Result<EngineState> snapshot(CacheKind cache) override;
  std::vector<SlotBytes> read(CacheKind cache, std::span<const SlotPlace> places) override;
  StepOutputs take_outputs(uint64_t step) override;
  bool shift_turns() const override { return shift_turns_; }
  DeviceReport take_device_report() override;

  bool worker_ended() const { return !ending_.empty(); }
  const std::string& ending() const { return ending_; }

 private:
  EngineReply ask(const EngineRequest& request);
  void note(DeviceReport& report);

  WorkerProcess& worker_;
  EngineReply last_;  // of perform
  PagesHeard heard_;
  DeviceReport device_;
  std::string ending_;
  bool shift_turns_ = false;
};

}  // namespace kv
