#include "harness/simt/cudart/capture.h"

#include <algorithm>
#include <utility>

namespace kv::simt::cudart {
namespace {

void stop_capturing(Streams& streams, Capture& capture) {
  capture.ended = true;
  for (Stream* stream : streams.all()) {
    if (stream->capture.get() != &capture) continue;
    stream->capture = nullptr;
    stream->frontier.clear();
  }
}

void merge_into(std::vector<size_t>& frontier, const std::vector<size_t>& more) {
  frontier.insert(frontier.end(), more.begin(), more.end());
  std::sort(frontier.begin(), frontier.end());
  frontier.erase(std::unique(frontier.begin(), frontier.end()), frontier.end());
}

bool concerns_this_thread(const Capture& capture) {
  if (Streams::thread_capture_mode() == cudaStreamCaptureModeRelaxed) return false;
  switch (capture.mode) {
    case cudaStreamCaptureModeGlobal:
      return true;
    case cudaStreamCaptureModeThreadLocal:
      return capture.thread == std::this_thread::get_id();
    default:
      return false;
  }
}

}  // namespace

cudaError_t begin_capture(Streams& streams, Stream& stream, cudaStreamCaptureMode mode) {
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) {
    return cudaErrorInvalidValue;
  }
  if (streams.is_legacy(stream)) return cudaErrorStreamCaptureUnsupported;
  if (stream.capture) return cudaErrorIllegalState;
  stream.capture = std::make_shared<Capture>();
  stream.capture->id = streams.next_capture_id();
  stream.capture->origin = &stream;
  stream.capture->mode = mode;
  stream.capture->thread = std::this_thread::get_id();
  stream.frontier.clear();
  return cudaSuccess;
}

cudaError_t end_capture(Streams& streams, Stream& stream, Graph& graph) {
  const std::shared_ptr<Capture> capture = stream.capture;
  if (!capture) return cudaErrorIllegalState;
  if (capture->origin != &stream) {
    capture->invalid = true;
    return cudaErrorStreamCaptureUnmatched;
  }
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return cudaErrorStreamCaptureWrongThread;
  }
  const bool joined = is_joined(capture->graph, stream.frontier);
  stop_capturing(streams, *capture);
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (!joined) return cudaErrorStreamCaptureUnjoined;
  graph = std::move(capture->graph);
  return cudaSuccess;
}

cudaError_t capture_operation(Stream& stream, Operation operation) {
  Capture& capture = *stream.capture;
  if (capture.invalid) return cudaErrorStreamCaptureInvalidated;
  capture.graph.nodes.push_back({std::move(operation), stream.frontier});
  stream.frontier = {capture.graph.nodes.size() - 1};
  return cudaSuccess;
}

cudaError_t capture_wait(Stream& stream, const Event& event) {
  if (!event.capture) {  // an event of uncaptured work
    stream.capture->invalid = true;
    return cudaErrorStreamCaptureIsolation;
  }
  if (event.capture->ended) return cudaErrorCapturedEvent;
  if (event.capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (stream.capture && stream.capture != event.capture) {
    stream.capture->invalid = event.capture->invalid = true;
    return cudaErrorStreamCaptureMerge;
  }
  stream.capture = event.capture;
  merge_into(stream.frontier, event.frontier);
  return cudaSuccess;
}

void capture_record(const Stream& stream, Event& event) {
  event.capture = stream.capture;
  event.frontier = stream.frontier;
}

cudaError_t break_capture(Stream& stream) {
  stream.capture->invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t forbid_during_capture(Streams& streams) {
  cudaError_t error = cudaSuccess;
  streams.each([&](Stream& stream) {
    if (stream.capture && concerns_this_thread(*stream.capture)) error = break_capture(stream);
  });
  return error;
}

cudaError_t forbid_legacy_during_capture(Streams& streams) {
  cudaError_t error = cudaSuccess;
  streams.each([&](Stream& stream) {
    if (!stream.capture || !stream.is_blocking()) return;
    stream.capture->invalid = true;
    error = cudaErrorStreamCaptureImplicit;
  });
  return error;
}

}  // namespace kv::simt::cudart
