#include "harness/simt/cudart/errors.h"

#include <cxxabi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>

namespace kv::simt::cudart {
namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* sentence;
};

#define KV_ERROR(error, sentence) \
  { error, #error, sentence }
// What this library returns, and neighbours that programs like to print.
constexpr ErrorText kTexts[] = {
    KV_ERROR(cudaSuccess, "no error"),
    KV_ERROR(cudaErrorInvalidValue, "invalid argument"),
    KV_ERROR(cudaErrorMemoryAllocation, "out of memory"),
    KV_ERROR(cudaErrorInitializationError, "initialization error"),
    KV_ERROR(cudaErrorCudartUnloading, "driver shutting down"),
    KV_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    KV_ERROR(cudaErrorInvalidPitchValue, "invalid pitch argument"),
    KV_ERROR(cudaErrorInvalidSymbol, "invalid device symbol"),
    KV_ERROR(cudaErrorInvalidDevicePointer, "invalid device pointer"),
    KV_ERROR(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    KV_ERROR(cudaErrorInsufficientDriver,
             "CUDA driver version is insufficient for CUDA runtime version"),
    KV_ERROR(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    KV_ERROR(cudaErrorMissingConfiguration, "__global__ function call is not configured"),
    KV_ERROR(cudaErrorInvalidDeviceFunction, "invalid device function"),
    KV_ERROR(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    KV_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
    KV_ERROR(cudaErrorInvalidKernelImage, "device kernel image is invalid"),
    KV_ERROR(cudaErrorDeviceUninitialized, "invalid device context"),
    KV_ERROR(cudaErrorNoKernelImageForDevice,
             "no kernel image is available for execution on the device"),
    KV_ERROR(cudaErrorUnsupportedLimit, "limit is not supported on this architecture"),
    KV_ERROR(cudaErrorDeviceAlreadyInUse,
             "exclusive-thread device already in use by a different thread"),
    KV_ERROR(cudaErrorPeerAccessUnsupported,
             "peer access is not supported between these two devices"),
    KV_ERROR(cudaErrorInvalidPtx, "a PTX JIT compilation failed"),
    KV_ERROR(cudaErrorUnsupportedPtxVersion,
             "the provided PTX was compiled with an unsupported toolchain."),
    KV_ERROR(cudaErrorFileNotFound, "file not found"),
    KV_ERROR(cudaErrorSharedObjectSymbolNotFound, "shared object symbol not found"),
    KV_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    KV_ERROR(cudaErrorSymbolNotFound, "named symbol not found"),
    KV_ERROR(cudaErrorNotReady, "device not ready"),
    KV_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    KV_ERROR(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    KV_ERROR(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    KV_ERROR(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    KV_ERROR(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    KV_ERROR(cudaErrorContextIsDestroyed, "context is destroyed"),
    KV_ERROR(cudaErrorAssert, "device-side assert triggered"),
    KV_ERROR(cudaErrorHostMemoryAlreadyRegistered,
             "part or all of the requested memory range is already mapped"),
    KV_ERROR(cudaErrorHostMemoryNotRegistered,
             "pointer does not correspond to a registered memory region"),
    KV_ERROR(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    KV_ERROR(cudaErrorMisalignedAddress, "misaligned address"),
    KV_ERROR(cudaErrorInvalidAddressSpace,
             "operation not supported on global/shared address space"),
    KV_ERROR(cudaErrorInvalidPc, "invalid program counter"),
    KV_ERROR(cudaErrorLaunchFailure, "unspecified launch failure"),
    KV_ERROR(cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"),
    KV_ERROR(cudaErrorNotSupported, "operation not supported"),
    KV_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    KV_ERROR(cudaErrorStreamCaptureInvalidated,
             "operation failed due to a previous error during capture"),
    KV_ERROR(cudaErrorStreamCaptureMerge,
             "operation would result in a merge of separate capture sequences"),
    KV_ERROR(cudaErrorStreamCaptureUnmatched,
             "capture was not ended in the same stream as it began"),
    KV_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    KV_ERROR(cudaErrorStreamCaptureIsolation,
             "dependency created on uncaptured work in another stream"),
    KV_ERROR(cudaErrorStreamCaptureImplicit,
             "operation would make the legacy stream depend on a capturing blocking stream"),
    KV_ERROR(cudaErrorCapturedEvent,
             "operation not permitted on an event last recorded in a capturing stream"),
    KV_ERROR(cudaErrorStreamCaptureWrongThread,
             "attempt to terminate a thread-local capture sequence from another thread"),
    KV_ERROR(cudaErrorGraphExecUpdateFailure,
             "the graph update was not performed because it included changes which violated "
             "constraints specific to instantiated graph update"),
    KV_ERROR(cudaErrorInvalidClusterSize,
             "a kernel launch error has occurred due to cluster misconfiguration"),
    KV_ERROR(cudaErrorUnknown, "unknown error"),
};
#undef KV_ERROR

const ErrorText* find(cudaError_t error) {
  for (const ErrorText& text : kTexts) {
    if (text.error == error) return &text;
  }
  return nullptr;
}

}  // namespace

const char* error_name(cudaError_t error) {
  const ErrorText* text = find(error);
  return text ? text->name : "unrecognized error code";
}

const char* error_sentence(cudaError_t error) {
  const ErrorText* text = find(error);
  return text ? text->sentence : "unrecognized error code";
}

std::string demangled(const std::string& name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 && text ? text : name;
  std::free(text);
  return result;
}

void notice(const std::string& sentence) {
  static auto* said = new std::set<std::string>;  // lives until the process is gone
  if (said->insert(sentence).second) std::fprintf(stderr, "kverify: %s\n", sentence.c_str());
}

void refuse_to_run(const std::string& sentence, int status) {
  notice(sentence);
  std::fflush(nullptr);
  _exit(status);  // the program's own exit handlers have nothing to stand on yet
}

}  // namespace kv::simt::cudart
