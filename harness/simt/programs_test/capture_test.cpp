// Graphs: what was captured and replayed equals what was issued.
#include <gtest/gtest.h>

#include "harness/simt/programs_test/device_fixture.h"
#include "harness/simt/programs_test/kernels.h"

namespace kv::simt::programs {
namespace {

class Capture : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_EQ(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&join, cudaEventDisableTiming), cudaSuccess);
  }
  /// x[0..3] = (x + 1) * 10 on one branch, x[4..7] += 5 on the other, then all + 2.
  void issue(int* x) {
    add(x, 1, 4, a);
    cudaEventRecord(fork, a);
    cudaStreamWaitEvent(b, fork, 0);
    multiply(x, 10, 4, a);
    add(x + 4, 5, 4, b);
    cudaEventRecord(join, b);
    cudaStreamWaitEvent(a, join, 0);
    add(x, 2, 8, a);
  }
  cudaStreamCaptureStatus status(cudaStream_t stream) {
    cudaStreamCaptureStatus s = cudaStreamCaptureStatusNone;
    EXPECT_EQ(cudaStreamIsCapturing(stream, &s), cudaSuccess);
    return s;
  }
  cudaStream_t a = nullptr, b = nullptr;
  cudaEvent_t fork = nullptr, join = nullptr;
};

TEST_F(Capture, ReplayEqualsEager) {
  int* eager = upload(std::vector<int>(8, 3));
  issue(eager);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const std::vector<int> expected = {42, 42, 42, 42, 10, 10, 10, 10};
  EXPECT_EQ(download(eager, 8), expected);

  int* captured = upload(std::vector<int>(8, 3));
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaSuccess);
  issue(captured);
  EXPECT_EQ(status(b), cudaStreamCaptureStatusActive) << "the event carried the capture over";
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(a, &graph), cudaSuccess);
  EXPECT_EQ(status(b), cudaStreamCaptureStatusNone);
  size_t nodes = 0;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 4u);
  EXPECT_EQ(download(captured, 8), std::vector<int>(8, 3)) << "capturing runs nothing";

  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, a), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  EXPECT_EQ(download(captured, 8), expected);
  ASSERT_EQ(cudaGraphLaunch(exec, b), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, a),
            cudaSuccess);  // after the launch on b: one exec, one at a time
  ASSERT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  EXPECT_EQ(download(captured, 8)[0], ((42 + 1) * 10 + 2 + 1) * 10 + 2);
  EXPECT_EQ(download(captured, 8)[7], 10 + 7 + 7);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(findings().size(), 0u);
}

TEST_F(Capture, CopiesReadTheirSourceWhenReplayed) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocHost(&memory, 16), cudaSuccess);
  int* host = static_cast<int*>(memory);
  host[0] = 1;
  int* x = upload(std::vector<int>(4, 0));
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  cudaMemcpyAsync(x, host, 4, cudaMemcpyHostToDevice, a);
  add(x, 1, 1, a);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(a, &graph), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&exec, graph, 0), cudaSuccess);
  for (const int value : {10, 20}) {
    host[0] = value;
    ASSERT_EQ(cudaGraphLaunch(exec, a), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(a), cudaSuccess);
    EXPECT_EQ(download(x, 1)[0], value + 1);
  }
}

TEST_F(Capture, AnUpdatedGraphRunsTheNewParameters) {
  int* x = upload(std::vector<int>(4, 0));
  cudaGraph_t graphs[3] = {};
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaSuccess);
    add(x, i + 1, 4, a);
    if (i == 2) add(x, 1, 4, a);
    ASSERT_EQ(cudaStreamEndCapture(a, &graphs[i]), cudaSuccess);
  }
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graphs[0], 0), cudaSuccess);
  cudaGraphExecUpdateResultInfo info = {};
  EXPECT_EQ(cudaGraphExecUpdate(exec, graphs[1], &info), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(exec, a), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  EXPECT_EQ(download(x, 4)[0], 2);
  EXPECT_EQ(cudaGraphExecUpdate(exec, graphs[2], &info), cudaErrorGraphExecUpdateFailure);
  EXPECT_EQ(info.result, cudaGraphExecUpdateErrorTopologyChanged);
}

TEST_F(Capture, UnjoinedWorkIsRefused) {
  int* x = upload(std::vector<int>(8, 0));
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaSuccess);
  add(x, 1, 4, a);
  cudaEventRecord(fork, a);
  cudaStreamWaitEvent(b, fork, 0);
  add(x, 1, 4, b);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(status(b), cudaStreamCaptureStatusNone);
}

TEST_F(Capture, SynchronizingACapturingStreamBreaksTheCapture) {
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(a), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(status(a), cudaStreamCaptureStatusInvalidated);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(status(a), cudaStreamCaptureStatusNone);
}

TEST_F(Capture, AllocatingDuringAGlobalCaptureBreaksIt) {
  void* memory = nullptr;
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureInvalidated);
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&memory, 16), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaSuccess);
}

TEST_F(Capture, TheLegacyStreamMayNotBeUsedWhileABlockingStreamCaptures) {
  int* x = upload(std::vector<int>(4, 0));
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  add(x, 1, 4);
  EXPECT_EQ(cudaGetLastError(), cudaErrorStreamCaptureImplicit);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);
}

TEST_F(Capture, UncapturedAndForeignEventsAreRefused) {
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaEventRecord(fork, b), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(a, fork, 0), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureInvalidated);

  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(b, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(fork, a), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(fork), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaStreamWaitEvent(b, fork, 0), cudaErrorStreamCaptureMerge);
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(b, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(Capture, EndingWhatWasNotBegun) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorIllegalState);
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  cudaEventRecord(fork, a);
  cudaStreamWaitEvent(b, fork, 0);
  EXPECT_EQ(cudaStreamEndCapture(b, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaGraphLaunch(nullptr, a), cudaErrorInvalidValue);
}

TEST_F(Capture, AGraphLaunchedIntoACaptureBecomesPartOfIt) {
  int* x = upload(std::vector<int>(4, 1));
  cudaGraph_t inner = nullptr, outer = nullptr;
  cudaGraphExec_t inner_exec = nullptr, outer_exec = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaSuccess);
  multiply(x, 10, 4, a);
  ASSERT_EQ(cudaStreamEndCapture(a, &inner), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&inner_exec, inner, 0), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal), cudaSuccess);
  add(x, 1, 4, a);
  ASSERT_EQ(cudaGraphLaunch(inner_exec, a), cudaSuccess);
  add(x, 3, 4, a);
  ASSERT_EQ(cudaStreamEndCapture(a, &outer), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&outer_exec, outer, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(outer_exec, a), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(a), cudaSuccess);
  EXPECT_EQ(download(x, 4)[0], 23);
}

}  // namespace
}  // namespace kv::simt::programs
