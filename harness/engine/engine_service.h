// Purpose: the worker's side of an engine that is judged from the parent.
// Contract: one engine at a time; answers every request, malformed ones with an error. Runs foreign
// code.
// Example:  EngineService service(plugin.api->engine, take_report); reply = service.serve(payload);
#pragma once

#include <functional>
#include <memory>

#include "harness/engine/engine_wire.h"
#include "harness/engine/local_engine.h"

namespace kv {

class EngineService {
 public:
  /// `device`: what it says since it was last asked. `level` may be null.
  EngineService(const kv_engine_level* level, std::function<DeviceReport()> device)
      : level_(level), device_(std::move(device)) {}

  std::vector<std::byte> serve(std::span<const std::byte> payload);

 private:
  void serve(const request::Create& create, EngineReply& reply);
  void serve(const request::Perform& perform, EngineReply& reply);
  void serve(const request::Read& read, EngineReply& reply);
  void serve(const request::TakeOutputs& take, EngineReply& reply);

  const kv_engine_level* level_;
  std::function<DeviceReport()> device_;
  Case case_;
  std::unique_ptr<LocalEngine> engine_;
  PagesTold told_;
};

}  // namespace kv
