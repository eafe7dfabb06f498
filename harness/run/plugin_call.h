// Purpose: one call into the plugin, and what it said.
// Contract: the first thing that goes wrong decides the observation's status and message; run() and
// synchronize() return true only when nothing did. A CUDA error that a call leaves behind although
// it returned KV_OK is a failure: the launch that it belongs to never ran.
#pragma once

#include <string>

#include "harness/plugin/text.h"
#include "harness/run/kernel_run.h"
#include "harness/run/stream_graph.h"

namespace kv {

class PluginCall {
 public:
  PluginCall(const Bench& bench, OpObservation& observation)
      : bench_(bench), observation_(observation) {}

  /// `function` is called with the plugin's functions and a kv_error to fill.
  template <class Function>
  bool run(Phase phase, Function function) {
    if (!settle()) return false;
    bench_.status.enter(phase);
    kv_error why = {};
    why.struct_bytes = sizeof why;
    const kv_status status = function(*bench_.plugin.api->kernel, &why);
    return accept(phase, status, printable_array(why.text));
  }

  /// The call's work by way of a graph, which is captured first unless it was before.
  template <class Function>
  bool run_from(StreamGraph& graph, void* stream, Phase phase, Function function) {
    if (graph.is_captured()) return settle() && accept_graph(phase, graph.launch(stream));
    if (!settle() || !accept_graph(phase, graph.begin(stream))) return false;
    bench_.status.enter(phase);
    kv_error why = {};
    why.struct_bytes = sizeof why;
    const kv_status status = function(*bench_.plugin.api->kernel, &why);
    const Result<void> captured = graph.end(stream);
    return accept(phase, status, printable_array(why.text)) && accept_graph(phase, captured) &&
           accept_graph(phase, graph.launch(stream));
  }

  /// Waits for the stream; a device fault surfaces here.
  bool synchronize(void* stream);

  void fail(const std::string& message);

 private:
  /// Waits for what kverify itself has put on the default stream. Fills, and copies from pageable
  /// memory, may still be under way when they return, and the plugin's stream is not ordered after
  /// the default stream.
  bool settle();
  bool wait(void* stream);
  bool accept(Phase phase, int status, const std::string& text);
  bool accept_graph(Phase phase, const Result<void>& outcome);
  bool record(OpStatus status, const std::string& message);

  const Bench& bench_;
  OpObservation& observation_;
};

}  // namespace kv
