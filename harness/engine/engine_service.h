// Purpose: the worker's side of an engine that is judged from the parent.
// Contract: one engine at a time; answers every request, malformed ones with an error. Runs foreign
// code.
// Example:  EngineService service(*plugin.api->engine, take); reply = service.serve(payload);
#pragma once

#include <functional>
#include <memory>

#include "harness/engine/engine_wire.h"
#include "harness/engine/local_engine.h"

namespace kv {

class EngineService {
 public:
  /// `device_findings`: what the device has found since it was last asked. `level` may be null.
  EngineService(const kv_engine_level* level,
                std::function<std::vector<std::string>()> device_findings)
      : level_(level), device_findings_(std::move(device_findings)) {}

  std::vector<std::byte> serve(std::span<const std::byte> payload);

 private:
  void serve(const request::Create& create, EngineReply& reply);
  void serve(const request::Perform& perform, EngineReply& reply);
  void serve(const request::Read& read, EngineReply& reply);
  void serve(const request::TakeOutputs& take, EngineReply& reply);

  const kv_engine_level* level_;
  std::function<std::vector<std::string>()> device_findings_;
  Case case_;
  std::unique_ptr<LocalEngine> engine_;
  PagesTold told_;
};

}  // namespace kv
