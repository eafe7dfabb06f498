// Exported: events. Times are the device's own ticks, called nanoseconds: the same in every run.
#include <cuda_runtime_api.h>

#include <memory>

#include "harness/simt/cudart/capture.h"
#include "harness/simt/cudart/runtime.h"

using namespace kv::simt::cudart;

namespace {

constexpr unsigned kKnownFlags =
    cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
constexpr double kMillisecondsPerTick = 1e-6;

cudaError_t record(Runtime& runtime, cudaEvent_t event_handle, cudaStream_t stream_handle) {
  Event* event = event_of(runtime, event_handle, "cudaEventRecord");
  Stream* stream = stream_of(runtime, stream_handle, "cudaEventRecord");
  if (!event || !stream) return cudaErrorInvalidResourceHandle;
  if (stream->capture) {
    if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
    capture_record(*stream, *event);
    return cudaSuccess;
  }
  auto record = std::make_shared<Event::Record>();
  const cudaError_t error = runtime.submit(*stream, {.run =
                                                         [&runtime, record] {
                                                           record->ticks = runtime.timeline.ticks();
                                                           return cudaSuccess;
                                                         },
                                                     .may_write_host = false});
  if (error != cudaSuccess) return error;
  record->work = stream->tail;
  event->record = std::move(record);
  event->capture = nullptr;
  return cudaSuccess;
}

bool is_timed(const Event* event) {
  return event && event->record && (event->flags & cudaEventDisableTiming) == 0;
}

}  // namespace

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  return api([&](Runtime& runtime) {
    if (!handle || (flags & ~kKnownFlags) != 0) return cudaErrorInvalidValue;
    *handle = runtime.events.insert({.flags = flags});
    return cudaSuccess;
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* handle) {
  return cudaEventCreateWithFlags(handle, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  return api([&](Runtime& runtime) {
    if (!event_of(runtime, handle, "cudaEventDestroy")) return cudaErrorInvalidResourceHandle;
    runtime.events.erase(handle);
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return api([&](Runtime& runtime) { return record(runtime, event, stream); });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return api([&](Runtime& runtime) {
    if (flags == cudaEventRecordExternal) return cudaErrorNotSupported;
    return flags == cudaEventRecordDefault ? record(runtime, event, stream) : cudaErrorInvalidValue;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  return api([&](Runtime& runtime) {
    const Event* event = event_of(runtime, handle, "cudaEventSynchronize");
    if (!event) return cudaErrorInvalidResourceHandle;
    if (event->capture) return cudaErrorCapturedEvent;
    if (event->record) runtime.timeline.complete({{event->record->work}});
    return runtime.device_error;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  return api([&](Runtime& runtime) {
    const Event* event = event_of(runtime, handle, "cudaEventQuery");
    if (!event) return cudaErrorInvalidResourceHandle;
    if (event->capture) return cudaErrorCapturedEvent;
    return event->record ? runtime.query({event->record->work}) : cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return api([&](Runtime& runtime) {
    const Event* first = event_of(runtime, start, "cudaEventElapsedTime");
    const Event* last = event_of(runtime, end, "cudaEventElapsedTime");
    if (!milliseconds) return cudaErrorInvalidValue;
    if (!is_timed(first) || !is_timed(last)) return cudaErrorInvalidResourceHandle;
    if (!runtime.timeline.is_done(first->record->work) ||
        !runtime.timeline.is_done(last->record->work)) {
      return cudaErrorNotReady;
    }
    const auto ticks = static_cast<int64_t>(last->record->ticks - first->record->ticks);
    *milliseconds = static_cast<float>(static_cast<double>(ticks) * kMillisecondsPerTick);
    return cudaSuccess;
  });
}
