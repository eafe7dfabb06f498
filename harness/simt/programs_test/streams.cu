// Missing order between streams, and misuse of the runtime by the host.
#include "harness/simt/programs_test/program.h"
#include "harness/simt/programs_test/stream_pair.h"

using namespace kv::simt::programs;

namespace {

template <bool kFaulty>
__global__ void produce(int* data) {
  data[threadIdx.x] = threadIdx.x + 1;
}

template <bool kFaulty>
__global__ void produce_in_time(int* data) {
  data[threadIdx.x] = threadIdx.x + 1;  // FAULT: missing_event_wait
}

template <bool kFaulty>
__global__ void produce_too_late(int* data) {
  data[threadIdx.x] = threadIdx.x + 1;  // FAULT: missing_stream_synchronize
}

template <bool kFaulty>
__global__ void consume(const int* data, int* positive) {
  if (data[threadIdx.x] > 0) atomicAdd(positive, 1);  // FAULT: missing_event_wait
}

template <bool kFaulty>
__global__ void consume_late(const int* data, int* positive) {
  if (data[threadIdx.x] > 0) atomicAdd(positive, 1);  // FAULT: missing_stream_synchronize
}

template <bool kFaulty>
__global__ void last_use(int* data) {
  data[threadIdx.x] = 7;  // FAULT: freed_in_another_stream
}

template <bool kFaulty>
__global__ void add_one(int* data) {
  data[threadIdx.x] += 1;  // FAULT: two_streams_write
}

template <bool kFaulty>
__global__ void double_all(int* data) {
  data[threadIdx.x] *= 2;  // FAULT: two_streams_write
}

template <bool kFaulty>
__global__ void sum_bytes(const unsigned char* data, int* sum) {
  atomicAdd(sum, data[blockIdx.x * 32 + threadIdx.x]);  // FAULT: written_while_read
}

template <bool kFaulty>
__global__ void overwrite(int* data) {
  data[threadIdx.x] = 0x01010101;  // FAULT: written_while_read
}

template <bool kFaulty>
__global__ void fill_result(int* data) {
  data[threadIdx.x] = threadIdx.x + 1;  // FAULT: copied_too_early
}

}  // namespace

KV_STREAM_PROGRAM(missing_event_wait, KV_SIMT_KIND_UNDEFINED) {
  StreamPair streams;
  DeviceArray<int> data(32), positive(std::vector<int>{0});
  KV_LAUNCH_IN(streams.first, produce_in_time, 1, 32, data.get());
  if (!faulty) streams.order();
  KV_LAUNCH_IN(streams.second, consume, 1, 32, data.get(), positive.get());
  return succeeded() && positive.read()[0] == 32;
}

KV_PROGRAM(missing_stream_synchronize, KV_SIMT_KIND_UNDEFINED) {
  StreamPair streams;
  DeviceArray<int> data(32), positive(std::vector<int>{0});
  KV_LAUNCH_IN(streams.first, produce_too_late, 1, 32, data.get());
  if (!faulty) cudaStreamSynchronize(streams.first);
  KV_LAUNCH(consume_late, 1, 32, 0, data.get(),
            positive.get());  // the default stream does not wait
  return positive.read()[0] == 32;
}

KV_PROGRAM(two_streams_write, KV_SIMT_KIND_RACE) {
  StreamPair streams;
  DeviceArray<int> data(std::vector<int>(32, 1));
  KV_LAUNCH_IN(streams.first, add_one, 1, 32, data.get());
  if (!faulty) streams.order();
  KV_LAUNCH_IN(streams.second, double_all, 1, 32, data.get());
  return succeeded() && data.read() == std::vector<int>(32, 4);
}

KV_PROGRAM(written_while_read, KV_SIMT_KIND_RACE) {
  StreamPair streams;
  DeviceArray<int> data(std::vector<int>(32, 0)), sum(std::vector<int>{0});
  KV_LAUNCH_IN(streams.first, sum_bytes, 4, 32, reinterpret_cast<const unsigned char*>(data.get()),
               sum.get());
  if (!faulty) streams.order();
  KV_LAUNCH_IN(streams.second, overwrite, 1, 32, data.get());
  return succeeded() && sum.read()[0] == 0;
}

KV_PROGRAM(copied_too_early, KV_SIMT_KIND_RACE) {
  StreamPair streams;
  DeviceArray<int> data(std::vector<int>(32, 0));
  int* result = nullptr;
  cudaMallocHost(&result, data.bytes());
  KV_LAUNCH_IN(streams.first, fill_result, 1, 32, data.get());
  if (!faulty) streams.order();
  cudaMemcpyAsync(result, data.get(), data.bytes(),  // FAULT: copied_too_early (host)
                  cudaMemcpyDeviceToHost, streams.second);
  const bool good = succeeded() && std::vector<int>(result, result + 32) == counting<int>(32, 1);
  cudaFreeHost(result);
  return good;
}

KV_STREAM_PROGRAM(freed_in_another_stream, KV_SIMT_KIND_USE_AFTER_FREE) {
  StreamPair streams;
  int* data = nullptr;
  cudaMallocAsync(&data, 32 * sizeof(int), streams.first);
  KV_LAUNCH_IN(streams.first, last_use, 1, 32, data);
  if (!faulty) streams.order();
  cudaFreeAsync(data, streams.second);
  return succeeded();
}

KV_PROGRAM(double_free, KV_SIMT_KIND_API) {
  int* data = nullptr;
  cudaMalloc(&data, 64);
  cudaFree(data);
  if (faulty) cudaFree(data);  // FAULT: double_free (host)
  return true;
}

KV_PROGRAM(leak, KV_SIMT_KIND_LEAK) {
  int* data = nullptr;
  cudaMalloc(&data, 64);
  if (!faulty) cudaFree(data);  // FAULT: leak (host)
  return true;
}

KV_PROGRAM(copy_past_the_end, KV_SIMT_KIND_API) {
  const auto values = counting<int>(33);
  DeviceArray<int> data(32);
  const size_t bytes = (faulty ? 33 : 32) * sizeof(int);
  cudaMemcpy(data.get(), values.data(), bytes,  // FAULT: copy_past_the_end (host)
             cudaMemcpyHostToDevice);
  return data.read() == counting<int>(32);
}

KV_PROGRAM(destroyed_stream, KV_SIMT_KIND_API) {
  DeviceArray<int> data(32);
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  if (faulty) cudaStreamDestroy(stream);
  KV_LAUNCH_IN(stream, produce, 1, 32, data.get());  // FAULT: destroyed_stream (host)
  if (!faulty) cudaStreamDestroy(stream);
  return data.read() == counting<int>(32, 1);
}
