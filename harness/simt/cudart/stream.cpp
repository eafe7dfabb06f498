#include "harness/simt/cudart/stream.h"

#include <utility>

namespace kv::simt::cudart {

cudaStream_t Streams::create(Stream stream) {
  stream.id = ++count_;
  return created_.insert(std::move(stream));
}

Stream* Streams::find(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) {
    legacy_.id = 1;
    return &legacy_;
  }
  if (handle != cudaStreamPerThread) return created_.find(handle);
  Stream& own = per_thread_[std::this_thread::get_id()];
  own.id = 2;
  return &own;
}

void Streams::destroy(cudaStream_t handle) {
  if (const Stream* stream = created_.find(handle); stream && stream->is_blocking()) {
    orphans_.push_back(stream->tail);
  }
  created_.erase(handle);
}

std::vector<WorkId> Streams::predecessors(const Stream& stream) const {
  std::vector<WorkId> before = {stream.tail};
  if (!is_legacy(stream)) {
    if (stream.is_blocking()) before.push_back(legacy_.tail);
    return before;
  }
  for (const auto& [id, own] : per_thread_) before.push_back(own.tail);
  for (const auto& [number, other] : created_) {
    if (other->is_blocking()) before.push_back(other->tail);
  }
  before.insert(before.end(), orphans_.begin(), orphans_.end());
  return before;
}

void Streams::forget_work() {
  for (Stream* stream : all()) stream->tail = 0;
  orphans_.clear();
}

void Streams::forget_created() {
  created_.clear();
  forget_work();
}

cudaStreamCaptureMode& Streams::thread_capture_mode() {
  thread_local cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  return mode;
}

std::vector<Stream*> Streams::all() {
  std::vector<Stream*> streams;
  each([&](Stream& stream) { streams.push_back(&stream); });
  return streams;
}

}  // namespace kv::simt::cudart
