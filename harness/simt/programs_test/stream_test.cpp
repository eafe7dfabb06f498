// Order and time: nothing runs before it must, and what is ordered stays ordered.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "harness/simt/programs_test/device_fixture.h"
#include "harness/simt/programs_test/kernels.h"

namespace kv::simt::programs {

// per_thread.cu
void per_thread_increment(int* x, int n);
std::vector<int> per_thread_round_trip(const std::vector<int>& values);

namespace {

class Streams : public DeviceTest {
 protected:
  static cudaStream_t make_stream(unsigned flags) {
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithFlags(&stream, flags), cudaSuccess);
    return stream;
  }
  static cudaEvent_t make_event() {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
    return event;
  }
  static int* pinned(int count, int value) {
    void* memory = nullptr;
    EXPECT_EQ(cudaMallocHost(&memory, count * sizeof(int)), cudaSuccess);
    int* ints = static_cast<int*>(memory);
    for (int i = 0; i < count; ++i) ints[i] = value;
    return ints;
  }
  static uint64_t launches() {
    kv_simt_counters counters = {};
    counters.struct_bytes = sizeof counters;
    EXPECT_EQ(control().counters(&counters), 0);
    return counters.launches;
  }
};

TEST_F(Streams, AKernelRunsOnlyWhenItIsNeeded) {
  int* x = upload(std::vector<int>(4, 1));
  const cudaStream_t stream = make_stream(cudaStreamNonBlocking);
  add(x, 1, 4, stream);
  EXPECT_EQ(launches(), 0u);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(launches(), 1u);
}

TEST_F(Streams, SynchronizingOneStreamLeavesAnotherWaiting) {
  int* x = upload(std::vector<int>(4, 1));
  const cudaStream_t a = make_stream(cudaStreamNonBlocking);
  const cudaStream_t b = make_stream(cudaStreamNonBlocking);
  add(x, 1, 4, a);
  add(x, 10, 4, b);
  EXPECT_EQ(cudaStreamSynchronize(b), cudaSuccess);
  EXPECT_EQ(launches(), 1u);
  EXPECT_EQ(download(x, 4)[0], 11) << "a non-blocking stream does not hold up the default stream";
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(download(x, 4)[0], 12);
}

TEST_F(Streams, LegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  int* x = upload(std::vector<int>(4, 1));
  const cudaStream_t blocking = make_stream(cudaStreamDefault);
  add(x, 1, 4, blocking);
  multiply(x, 10, 4);      // legacy: after the addition
  add(x, 3, 4, blocking);  // after the multiplication
  EXPECT_EQ(cudaStreamSynchronize(blocking), cudaSuccess);
  EXPECT_EQ(launches(), 3u);
  EXPECT_EQ(download(x, 4)[0], 23);
}

TEST_F(Streams, WorkOfADestroyedStreamStillComesFirst) {
  int* x = upload(std::vector<int>(4, 1));
  const cudaStream_t blocking = make_stream(cudaStreamDefault);
  add(x, 1, 4, blocking);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
  multiply(x, 10, 4);
  EXPECT_EQ(download(x, 4)[0], 20);
}

TEST_F(Streams, UnorderedWorkRunsInEitherOrder) {
  std::set<int> results;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    kv_simt_config config = current();
    config.schedule_seed = seed;
    configure(config);
    int* x = upload(std::vector<int>(4, 1));
    add(x, 1, 4, make_stream(cudaStreamNonBlocking));
    multiply(x, 10, 4, make_stream(cudaStreamNonBlocking));
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    results.insert(download(x, 4)[0]);
  }
  EXPECT_EQ(results, std::set<int>({11, 20}));
}

TEST_F(Streams, AnEventOrdersThemUnderEverySeed) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    kv_simt_config config = current();
    config.schedule_seed = seed;
    configure(config);
    int* x = upload(std::vector<int>(4, 1));
    const cudaStream_t a = make_stream(cudaStreamNonBlocking);
    const cudaStream_t b = make_stream(cudaStreamNonBlocking);
    const cudaEvent_t event = make_event();
    add(x, 1, 4, a);
    ASSERT_EQ(cudaEventRecord(event, a), cudaSuccess);
    add(x, 1000, 4, a);  // after the event: not part of what b waits for
    ASSERT_EQ(cudaStreamWaitEvent(b, event, 0), cudaSuccess);
    multiply(x, 10, 4, b);
    ASSERT_EQ(cudaStreamSynchronize(b), cudaSuccess);
    EXPECT_EQ(download(x, 4)[0], 20) << seed;
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
}

TEST_F(Streams, AnEventRecordedAgainDoesNotMoveAnEarlierWait) {
  int* x = upload(std::vector<int>(4, 1));
  const cudaStream_t a = make_stream(cudaStreamNonBlocking);
  const cudaStream_t b = make_stream(cudaStreamNonBlocking);
  const cudaEvent_t event = make_event();
  add(x, 1, 4, a);
  cudaEventRecord(event, a);
  cudaStreamWaitEvent(b, event, 0);
  add(x, 1000, 4, a);
  cudaEventRecord(event, a);
  multiply(x, 10, 4, b);
  ASSERT_EQ(cudaStreamSynchronize(b), cudaSuccess);
  EXPECT_EQ(download(x, 4)[0], 20);
}

TEST_F(Streams, PinnedMemoryIsReadLate) {
  int* host = pinned(4, 1);
  int* x = upload(std::vector<int>(4, 0));
  const cudaStream_t stream = make_stream(cudaStreamNonBlocking);
  ASSERT_EQ(cudaMemcpyAsync(x, host, 16, cudaMemcpyHostToDevice, stream), cudaSuccess);
  host[0] = 99;  // too early: the copy has not been waited for
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(download(x, 4), std::vector<int>({99, 1, 1, 1}));
}

TEST_F(Streams, PageableMemoryIsTakenAtTheCall) {
  std::vector<int> host(4, 1);
  int* x = upload(std::vector<int>(4, 0));
  const cudaStream_t stream = make_stream(cudaStreamNonBlocking);
  ASSERT_EQ(cudaMemcpyAsync(x, host.data(), 16, cudaMemcpyHostToDevice, stream), cudaSuccess);
  host[0] = 99;
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(download(x, 4), std::vector<int>(4, 1));
}

TEST_F(Streams, PinnedMemoryIsWrittenLateAndPageableBeforeTheReturn) {
  int* x = upload(std::vector<int>(4, 7));
  int* late = pinned(4, -1);
  std::vector<int> at_once(4, -1);
  const cudaStream_t stream = make_stream(cudaStreamNonBlocking);
  ASSERT_EQ(cudaMemcpyAsync(late, x, 16, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(late[0], -1) << "a missing synchronisation reads the old value";
  ASSERT_EQ(cudaMemcpyAsync(at_once.data(), x, 16, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(at_once[0], 7);
  EXPECT_EQ(late[0], 7) << "it came earlier in the same stream";
}

TEST_F(Streams, RegisteredMemoryCountsAsPinned) {
  std::vector<int> host(4, 1);
  ASSERT_EQ(cudaHostRegister(host.data(), 16, 0), cudaSuccess);
  EXPECT_EQ(cudaHostRegister(host.data() + 1, 4, 0), cudaErrorHostMemoryAlreadyRegistered);
  int* x = upload(std::vector<int>(4, 0));
  const cudaStream_t stream = make_stream(cudaStreamNonBlocking);
  ASSERT_EQ(cudaMemcpyAsync(x, host.data(), 16, cudaMemcpyHostToDevice, stream), cudaSuccess);
  host[0] = 99;
  ASSERT_EQ(cudaHostUnregister(host.data()), cudaSuccess) << "which waits";
  EXPECT_EQ(download(x, 4)[0], 99);
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaErrorHostMemoryNotRegistered);
}

TEST_F(Streams, QueriesMakeProgressOneStepAtATime) {
  int* x = upload(std::vector<int>(4, 1));
  const cudaStream_t stream = make_stream(cudaStreamNonBlocking);
  const cudaEvent_t event = make_event();
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess) << "never recorded";
  add(x, 1, 4, stream);
  add(x, 1, 4, stream);
  cudaEventRecord(event, stream);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorNotReady);
}

TEST_F(Streams, ElapsedTimeIsTheSameInEveryRun) {
  float milliseconds[2] = {};
  for (float& elapsed : milliseconds) {
    int* x = upload(std::vector<int>(4, 1));
    const cudaEvent_t start = make_event(), end = make_event();
    cudaEventRecord(start, nullptr);
    add(x, 1, 4);
    cudaEventRecord(end, nullptr);
    EXPECT_EQ(cudaEventElapsedTime(&elapsed, start, end), cudaErrorNotReady);
    ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
    ASSERT_EQ(cudaEventElapsedTime(&elapsed, start, end), cudaSuccess);
  }
  EXPECT_GT(milliseconds[0], 0.0f);
  EXPECT_EQ(milliseconds[0], milliseconds[1]);
}

TEST_F(Streams, HostFunctionsRunInOrder) {
  int* x = upload(std::vector<int>(4, 1));
  int* seen = pinned(1, 0);
  const cudaStream_t stream = make_stream(cudaStreamNonBlocking);
  cudaMemcpyAsync(seen, x, 4, cudaMemcpyDeviceToHost, stream);
  cudaLaunchHostFunc(
      stream, [](void* data) { *static_cast<int*>(data) *= 5; }, seen);
  EXPECT_EQ(*seen, 0);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(*seen, 5);
}

TEST_F(Streams, FillsAreAsynchronous) {
  int* x = upload(std::vector<int>(4, 1));
  ASSERT_EQ(cudaMemset(x, 0, 16), cudaSuccess);
  const cudaStream_t stream = make_stream(cudaStreamNonBlocking);
  int* seen = pinned(4, -1);
  cudaMemcpyAsync(seen, x, 16, cudaMemcpyDeviceToHost, stream);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(seen[0], 1) << "nothing orders the fill before the copy";
  EXPECT_EQ(download(x, 4)[0], 0);
}

TEST_F(Streams, FreeingWaitsForTheDevice) {
  int* x = upload(std::vector<int>(4, 1));
  add(x, 1, 4, make_stream(cudaStreamNonBlocking));
  EXPECT_EQ(cudaFree(x), cudaSuccess);
  EXPECT_EQ(launches(), 1u);
  EXPECT_EQ(findings().size(), 0u);
}

TEST_F(Streams, PerThreadDefaultStreamIsAStreamOfItsOwn) {
  int* x = upload(std::vector<int>(4, 1));
  add(x, 1, 4, cudaStreamPerThread);
  EXPECT_EQ(launches(), 0u);
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  EXPECT_EQ(download(x, 4)[0], 2);
}

TEST_F(Streams, ProgramsCompiledForPerThreadStreamsUseTheirs) {
  EXPECT_EQ(per_thread_round_trip({1, 2, 3}), std::vector<int>({2, 3, 4}));
  int* x = upload(std::vector<int>(4, 1));
  const uint64_t before = launches();
  const cudaStream_t other = make_stream(cudaStreamDefault);
  per_thread_increment(x, 4);
  EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  EXPECT_EQ(launches(), before) << "unlike work of the legacy stream, nobody waits for it";
  EXPECT_EQ(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess);
  EXPECT_EQ(launches(), before + 1);
  EXPECT_EQ(findings().size(), 0u);
}

TEST_F(Streams, PropertiesAndBadHandles) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -3), cudaSuccess);
  unsigned flags = 0;
  int priority = 0;
  EXPECT_EQ(cudaStreamGetFlags(stream, &flags), cudaSuccess);
  EXPECT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
  EXPECT_EQ(flags, unsigned{cudaStreamNonBlocking});
  EXPECT_EQ(priority, -3);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamDestroy(nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(reinterpret_cast<cudaEvent_t>(0x1234), nullptr),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, 0x80), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace kv::simt::programs
