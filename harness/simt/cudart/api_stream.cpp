// Exported: streams and their capture.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "harness/simt/cudart/capture.h"
#include "harness/simt/cudart/runtime.h"

using namespace kv::simt::cudart;

namespace {

constexpr int kPriorityLeast = 0, kPriorityGreatest = -5;

cudaError_t create(cudaStream_t* handle, unsigned flags, int priority) {
  return api([&](Runtime& runtime) {
    if (!handle || (flags & ~cudaStreamNonBlocking) != 0) return cudaErrorInvalidValue;
    *handle = runtime.streams.create(
        {.flags = flags, .priority = std::clamp(priority, kPriorityGreatest, kPriorityLeast)});
    return cudaSuccess;
  });
}

/// The frame of a call that reads one property of a stream into `out`.
template <class Out, class Read>
cudaError_t read_stream(const char* call, cudaStream_t handle, Out* out, Read&& read) {
  return api([&](Runtime& runtime) {
    const Stream* stream = stream_of(runtime, handle, call);
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!out) return cudaErrorInvalidValue;
    *out = read(*stream);
    return cudaSuccess;
  });
}

cudaStreamCaptureStatus status_of(const Stream& stream) {
  if (!stream.capture) return cudaStreamCaptureStatusNone;
  return stream.capture->invalid ? cudaStreamCaptureStatusInvalidated
                                 : cudaStreamCaptureStatusActive;
}

}  // namespace

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return create(stream, cudaStreamDefault, 0); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return create(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return create(stream, flags, priority);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return api([&](Runtime& runtime) {
    Stream* stream = stream_of(runtime, handle, "cudaStreamDestroy");
    const bool is_default = !handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread;
    if (!stream || is_default) return cudaErrorInvalidResourceHandle;
    if (stream->capture) return break_capture(*stream);
    runtime.streams.destroy(handle);
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return api([&](Runtime& runtime) {
    Stream* stream = stream_of(runtime, handle, "cudaStreamSynchronize");
    return stream ? runtime.synchronize(*stream) : cudaErrorInvalidResourceHandle;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return api([&](Runtime& runtime) {
    Stream* stream = stream_of(runtime, handle, "cudaStreamQuery");
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (stream->capture) return break_capture(*stream);
    return runtime.query(runtime.awaited(*stream));
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t event_handle, unsigned) {
  return api([&](Runtime& runtime) {
    Stream* stream = stream_of(runtime, stream_handle, "cudaStreamWaitEvent");
    const Event* event = event_of(runtime, event_handle, "cudaStreamWaitEvent");
    if (!stream || !event) return cudaErrorInvalidResourceHandle;
    if (stream->capture || event->capture) return capture_wait(*stream, *event);
    if (event->record) runtime.wait_for(*stream, event->record->work);
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return api([&](Runtime& runtime) {
    Stream* stream = stream_of(runtime, handle, "cudaLaunchHostFunc");
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!function) return cudaErrorInvalidValue;
    return runtime.submit(*stream, {.run =
                                        [function, data] {
                                          function(data);
                                          return cudaSuccess;
                                        },
                                    .touches_host = true});
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void* data,
                                  unsigned flags) {
  return api([&](Runtime& runtime) {
    Stream* stream = stream_of(runtime, handle, "cudaStreamAddCallback");
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!callback || flags != 0) return cudaErrorInvalidValue;
    if (stream->capture) return break_capture(*stream);
    return runtime.submit(*stream, {.run =
                                        [handle, callback, data] {
                                          callback(handle, cudaSuccess, data);
                                          return cudaSuccess;
                                        },
                                    .touches_host = true});
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return read_stream("cudaStreamGetFlags", stream, flags, [](const Stream& s) { return s.flags; });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return read_stream("cudaStreamGetPriority", stream, priority,
                     [](const Stream& s) { return s.priority; });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return read_stream("cudaStreamGetId", stream, id, [](const Stream& s) { return s.id; });
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return read_stream("cudaStreamGetDevice", stream, device, [](const Stream&) { return 0; });
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return read_stream("cudaStreamIsCapturing", stream, status, status_of);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* dependency_count) {
  return api([&](Runtime& runtime) {
    const Stream* stream = stream_of(runtime, handle, "cudaStreamGetCaptureInfo");
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!status) return cudaErrorInvalidValue;
    if (graph || dependencies || edges || dependency_count) return cudaErrorNotSupported;
    *status = status_of(*stream);
    if (id) *id = stream->capture ? stream->capture->id : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  return api([&](Runtime& runtime) {
    Stream* stream = stream_of(runtime, handle, "cudaStreamBeginCapture");
    if (!stream) return cudaErrorInvalidResourceHandle;
    return begin_capture(runtime.streams, *stream, mode);
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* out) {
  return api([&](Runtime& runtime) {
    Stream* stream = stream_of(runtime, handle, "cudaStreamEndCapture");
    if (!stream) return cudaErrorInvalidResourceHandle;
    if (!out) return cudaErrorInvalidValue;
    *out = nullptr;
    Graph graph;
    const cudaError_t error = end_capture(runtime.streams, *stream, graph);
    if (error == cudaSuccess) *out = runtime.graphs.insert(std::move(graph));
    return error;
  });
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return api([&](Runtime& runtime) {
    if (!mode) return cudaErrorInvalidValue;
    std::swap(*mode, runtime.streams.thread_capture_mode());
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api([&](Runtime&) {
    if (least) *least = kPriorityLeast;
    if (greatest) *greatest = kPriorityGreatest;
    return cudaSuccess;
  });
}
