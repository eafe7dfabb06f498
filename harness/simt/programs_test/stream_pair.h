// Purpose: two streams that wait for nobody, and an event between them.
// Contract: order() makes what follows in the second wait for what stands in the first.
#pragma once

#include <cuda_runtime.h>

struct StreamPair {
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
  StreamPair() {
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  }
  ~StreamPair() {
    cudaEventDestroy(event);
    cudaStreamDestroy(second);
    cudaStreamDestroy(first);
  }
  void order() {
    cudaEventRecord(event, first);
    cudaStreamWaitEvent(second, event, 0);
  }
};
