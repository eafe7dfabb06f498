// Purpose: stream capture: begin, spread over streams through events, end.
// Contract: the functions return what the runtime returns for the same misuse; a capture that was
// broken stays broken until it is ended.
#pragma once

#include <cuda_runtime_api.h>

#include "harness/simt/cudart/stream.h"

namespace kv::simt::cudart {

cudaError_t begin_capture(Streams& streams, Stream& stream, cudaStreamCaptureMode mode);
/// The captured graph in `graph`; every stream that took part stops capturing.
cudaError_t end_capture(Streams& streams, Stream& stream, Graph& graph);

/// Adds one operation to the capture of `stream`.
cudaError_t capture_operation(Stream& stream, Operation operation);
/// Makes later work of `stream` follow `event`; one of the two belongs to a capture.
cudaError_t capture_wait(Stream& stream, const Event& event);
void capture_record(const Stream& stream, Event& event);

/// Breaks the capture of a stream that was asked for what a capture forbids.
cudaError_t break_capture(Stream& stream);
/// A call that capture forbids to this thread (cudaMalloc, say): breaks the captures concerned and
/// returns cudaErrorStreamCaptureUnsupported, or cudaSuccess when there are none.
cudaError_t forbid_during_capture(Streams& streams);
/// A call on the legacy stream while a blocking stream captures: as above, with
/// cudaErrorStreamCaptureImplicit.
cudaError_t forbid_legacy_during_capture(Streams& streams);

}  // namespace kv::simt::cudart
