// What differs between CUDA 12 and 13 for a program: the layout of the device's properties and the
// parameters of a few functions. Ends with 0 when all of it is as on an A100.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void add_one(int* value) { *value += 1; }

bool expect(const char* what, long long want, long long got) {
  if (want != got) std::printf("%s: expected %lld, got %lld\n", what, want, got);
  return want == got;
}

int main() {
  cudaDeviceProp p;
  int *device = nullptr, value = 41, version = 0;
  cudaStream_t stream;
  bool good = cudaGetDeviceProperties(&p, 0) == cudaSuccess;
  good &= expect("major", 8, p.major);
  good &= expect("warpSize", 32, p.warpSize);
  good &= expect("multiProcessorCount", 108, p.multiProcessorCount);
  good &= expect("sharedMemPerMultiprocessor", 167936, (long long)p.sharedMemPerMultiprocessor);
  good &= expect("sharedMemPerBlockOptin", 166912, (long long)p.sharedMemPerBlockOptin);
  good &= expect("reservedSharedMemPerBlock", 1024, (long long)p.reservedSharedMemPerBlock);
  good &= expect("cooperativeLaunch", 1, p.cooperativeLaunch);
  good &= cudaRuntimeGetVersion(&version) == cudaSuccess && expect("version", 12, version / 1000);
  good &= cudaStreamCreate(&stream) == cudaSuccess;
  good &= cudaMallocManaged(&device, sizeof *device) == cudaSuccess;
  good &=
      cudaMemcpyAsync(device, &value, sizeof value, cudaMemcpyHostToDevice, stream) == cudaSuccess;
  good &= cudaMemPrefetchAsync(device, sizeof *device, 0, stream) == cudaSuccess;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  good &= cudaStreamGetCaptureInfo(stream, &status) == cudaSuccess;
  good &= expect("capture", cudaStreamCaptureStatusNone, status);
  add_one<<<1, 1, 0, stream>>>(device);
  good &=
      cudaMemcpyAsync(&value, device, sizeof value, cudaMemcpyDeviceToHost, stream) == cudaSuccess;
  good &= cudaStreamSynchronize(stream) == cudaSuccess && expect("value", 42, value);
  good &= cudaFree(device) == cudaSuccess && cudaStreamDestroy(stream) == cudaSuccess;
  return good ? 0 : 1;
}
