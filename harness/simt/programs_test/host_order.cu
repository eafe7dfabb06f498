// What the host promises and does not keep: lifetimes, order and sizes of what is under way.
#include "harness/simt/programs_test/program.h"
#include "harness/simt/programs_test/stream_pair.h"

using namespace kv::simt::programs;

namespace {

__global__ void use_pool(int* data) {
  data[threadIdx.x] = 7;  // FAULT: pool_freed_before_use
}

__global__ void use_captured(int* data) {
  data[threadIdx.x] += 1;  // FAULT: graph_after_free
}

__global__ void produce_late(int* data) {
  data[threadIdx.x] = threadIdx.x + 1;  // FAULT: event_before_work
}

__global__ void consume_late(const int* data, int* positive) {
  if (data[threadIdx.x] > 0) atomicAdd(positive, 1);  // FAULT: event_before_work
}

__global__ void read_uploaded(const int* data, int* sum) { atomicAdd(sum, data[threadIdx.x]); }

__global__ void clear_late(int* data) {
  data[threadIdx.x] += 1;  // FAULT: cleared_in_another_stream
}

__constant__ int table[32];

__global__ void read_table(int* out) {
  out[threadIdx.x] = table[threadIdx.x];  // FAULT: constant_replaced
}

__global__ void add_branch(int* data, int value) {
  data[threadIdx.x] += value;  // FAULT: branches_not_joined
}

__global__ void partial(const int* in, int* parts) { parts[blockIdx.x] = in[blockIdx.x]; }

__global__ void merge(const int* parts, int splits, int* above) {
  int sum = 0;
  for (int s = 0; s < splits; ++s) sum += parts[s];
  if (sum > 5) atomicAdd(above, sum);  // FAULT: merge_of_more_splits
}

extern __shared__ int dynamic_shared[];
__global__ void use_much_shared(int* out) {
  dynamic_shared[threadIdx.x] = 1;
  out[threadIdx.x] = dynamic_shared[threadIdx.x];
}

}  // namespace

KV_PROGRAM(pool_freed_before_use, KV_SIMT_KIND_USE_AFTER_FREE) {
  StreamPair s;
  int* data = nullptr;
  cudaMallocAsync(&data, 32 * sizeof(int), s.first);
  if (faulty) cudaFreeAsync(data, s.first);
  use_pool<<<1, 32, 0, s.first>>>(data);
  if (!faulty) cudaFreeAsync(data, s.first);
  return succeeded();
}

KV_PROGRAM(graph_after_free, KV_SIMT_KIND_USE_AFTER_FREE) {
  StreamPair s;
  int* data = nullptr;
  cudaMalloc(&data, 32 * sizeof(int));
  const std::vector<int> zeros(32, 0);
  cudaMemcpy(data, zeros.data(), 32 * sizeof(int), cudaMemcpyHostToDevice);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  cudaStreamBeginCapture(s.first, cudaStreamCaptureModeGlobal);
  use_captured<<<1, 32, 0, s.first>>>(data);
  cudaStreamEndCapture(s.first, &graph);
  cudaGraphInstantiate(&replay, graph, 0);
  cudaGraphLaunch(replay, s.first);
  cudaStreamSynchronize(s.first);
  if (faulty) cudaFree(data);
  cudaGraphLaunch(replay, s.first);
  cudaStreamSynchronize(s.first);
  int got = 0;
  if (!faulty) {
    cudaMemcpy(&got, data, sizeof got, cudaMemcpyDeviceToHost);
    cudaFree(data);
  }
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  return got == 2;
}

KV_PROGRAM(event_before_work, KV_SIMT_KIND_RACE) {
  StreamPair s;
  DeviceArray<int> data(std::vector<int>(32, 0)), positive(std::vector<int>{0});
  if (faulty) s.order();
  produce_late<<<1, 32, 0, s.first>>>(data.get());
  if (!faulty) s.order();
  consume_late<<<1, 32, 0, s.second>>>(data.get(), positive.get());
  return succeeded() && positive.read()[0] == 32;
}

KV_PROGRAM(pinned_overwritten, KV_SIMT_KIND_API) {
  StreamPair s;
  DeviceArray<int> data(32), sum(std::vector<int>{0});
  int* pinned = nullptr;
  cudaMallocHost(&pinned, 32 * sizeof(int));
  for (int i = 0; i < 32; ++i) pinned[i] = 1;
  cudaMemcpyAsync(data.get(), pinned, 32 * sizeof(int),  // FAULT: pinned_overwritten (host)
                  cudaMemcpyHostToDevice, s.first);
  if (!faulty) cudaStreamSynchronize(s.first);
  for (int i = 0; i < 32; ++i) pinned[i] = 2;
  read_uploaded<<<1, 32, 0, s.first>>>(data.get(), sum.get());
  const bool good = succeeded() && sum.read()[0] == 32;
  cudaFreeHost(pinned);
  return good;
}

KV_PROGRAM(cleared_in_another_stream, KV_SIMT_KIND_RACE) {
  StreamPair s;
  DeviceArray<int> data(std::vector<int>(32, 5));
  cudaMemsetAsync(data.get(), 0, data.bytes(), s.first);  // FAULT: cleared_in_another_stream (host)
  if (!faulty) s.order();
  clear_late<<<1, 32, 0, s.second>>>(data.get());
  return succeeded() && data.read() == std::vector<int>(32, 1);
}

KV_PROGRAM(constant_replaced, KV_SIMT_KIND_RACE) {
  StreamPair s;
  DeviceArray<int> out(32);
  const auto ones = std::vector<int>(32, 1), twos = std::vector<int>(32, 2);
  cudaMemcpyToSymbol(table, ones.data(), 32 * sizeof(int));
  read_table<<<1, 32, 0, s.first>>>(out.get());
  if (!faulty) s.order();
  cudaMemcpyToSymbolAsync(table, twos.data(), 32 * sizeof(int),
                          0,  // FAULT: constant_replaced (host)
                          cudaMemcpyHostToDevice, s.second);
  return succeeded() && out.read() == ones;
}

KV_PROGRAM(branches_not_joined, KV_SIMT_KIND_RACE) {
  StreamPair s;
  DeviceArray<int> data(std::vector<int>(32, 0));
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  cudaEvent_t joined = nullptr;
  cudaEventCreateWithFlags(&joined, cudaEventDisableTiming);
  cudaStreamBeginCapture(s.first, cudaStreamCaptureModeGlobal);
  s.order();
  add_branch<<<1, 32, 0, s.second>>>(data.get(), 1);
  cudaEventRecord(joined, s.second);
  if (!faulty) cudaStreamWaitEvent(s.first, joined, 0);
  add_branch<<<1, 32, 0, s.first>>>(data.get(), 2);
  cudaStreamWaitEvent(s.first, joined, 0);
  cudaStreamEndCapture(s.first, &graph);
  cudaGraphInstantiate(&replay, graph, 0);
  cudaGraphLaunch(replay, s.first);
  const bool good = succeeded() && data.read() == std::vector<int>(32, 3);
  cudaGraphExecDestroy(replay);
  cudaGraphDestroy(graph);
  cudaEventDestroy(joined);
  return good;
}

KV_PROGRAM(merge_of_more_splits, KV_SIMT_KIND_UNDEFINED) {
  DeviceArray<int> in(counting<int>(8)), parts(8), above(std::vector<int>{0});
  const int written = faulty ? 7 : 8;
  partial<<<written, 1>>>(in.get(), parts.get());
  merge<<<1, 1>>>(parts.get(), 8, above.get());
  return above.read()[0] == 28;
}

KV_PROGRAM(shared_limit_not_raised, KV_SIMT_KIND_API) {
  constexpr int kBytes = 96 * 1024, kBytesDefault = 48 * 1024;
  DeviceArray<int> out(32);
  cudaFuncSetAttribute(use_much_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       faulty ? kBytesDefault : kBytes);
  use_much_shared<<<1, 32, kBytes>>>(out.get());  // FAULT: shared_limit_not_raised (host)
  return out.read() == std::vector<int>(32, 1);
}

KV_PROGRAM(rows_beyond_the_pitch, KV_SIMT_KIND_API) {
  DeviceArray<int> data(4 * 32);
  const auto host = counting<int>(4 * 32);
  const size_t pitch = (faulty ? 33 : 32) * sizeof(int);
  cudaMemcpy2D(data.get(), pitch, host.data(),  // FAULT: rows_beyond_the_pitch (host)
               32 * sizeof(int), 32 * sizeof(int), 4, cudaMemcpyHostToDevice);
  return data.read() == host;
}
