// Exported: copies, fills, device symbols.
#include <cuda_runtime_api.h>

#include "harness/simt/cudart/copy.h"
#include "harness/simt/cudart/runtime.h"

using namespace kv::simt::cudart;

namespace {

struct SymbolCall {
  const char* name;
  const void* symbol;
  size_t bytes, offset;
};

/// The device address of [offset, offset + bytes) of a variable; an error that was reported if
/// there is none.
cudaError_t symbol_address(Runtime& runtime, const SymbolCall& call, void** address) {
  const auto symbol = runtime.images.find_symbol(call.symbol);
  if (!symbol.ok()) {
    runtime.report_misuse(call.name, symbol.sentence);
    return symbol.error;
  }
  if (call.offset > symbol.bytes || call.bytes > symbol.bytes - call.offset) {
    runtime.report_misuse(call.name, "bytes " + std::to_string(call.offset) + " to " +
                                         std::to_string(call.offset + call.bytes) +
                                         " of a variable of " + std::to_string(symbol.bytes));
    return cudaErrorInvalidValue;
  }
  runtime.memory.note_symbol(symbol.address, symbol.bytes);
  *address = reinterpret_cast<void*>(symbol.address + call.offset);
  return cudaSuccess;
}

cudaError_t copy_to_symbol(Runtime& runtime, const SymbolCall& symbol, CopyCall call) {
  if (call.kind != cudaMemcpyHostToDevice && call.kind != cudaMemcpyDeviceToDevice &&
      call.kind != cudaMemcpyDefault) {
    return cudaErrorInvalidMemcpyDirection;
  }
  const cudaError_t error = symbol_address(runtime, symbol, &call.to);
  if (error != cudaSuccess) return error;
  call.name = symbol.name;
  call.width_bytes = symbol.bytes;
  return copy(runtime, call);
}

cudaError_t copy_from_symbol(Runtime& runtime, const SymbolCall& symbol, CopyCall call) {
  if (call.kind != cudaMemcpyDeviceToHost && call.kind != cudaMemcpyDeviceToDevice &&
      call.kind != cudaMemcpyDefault) {
    return cudaErrorInvalidMemcpyDirection;
  }
  void* address = nullptr;
  const cudaError_t error = symbol_address(runtime, symbol, &address);
  if (error != cudaSuccess) return error;
  call.name = symbol.name;
  call.from = address;
  call.width_bytes = symbol.bytes;
  return copy(runtime, call);
}

}  // namespace

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return api([&](Runtime& runtime) {
    return copy(runtime,
                {.name = "cudaMemcpy", .to = to, .from = from, .width_bytes = bytes, .kind = kind});
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    return copy(runtime, {.name = "cudaMemcpyAsync",
                          .to = to,
                          .from = from,
                          .width_bytes = bytes,
                          .kind = kind,
                          .stream = stream,
                          .asynchronous = true});
  });
}

cudaError_t cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return api([&](Runtime& runtime) {
    return copy(runtime, {.name = "cudaMemcpyPeer",
                          .to = to,
                          .from = from,
                          .width_bytes = bytes,
                          .kind = cudaMemcpyDeviceToDevice});
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    return copy(runtime, {.name = "cudaMemcpyPeerAsync",
                          .to = to,
                          .from = from,
                          .width_bytes = bytes,
                          .kind = cudaMemcpyDeviceToDevice,
                          .stream = stream,
                          .asynchronous = true});
  });
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return api([&](Runtime& runtime) {
    return copy(runtime, {.name = "cudaMemcpy2D",
                          .to = to,
                          .from = from,
                          .width_bytes = width,
                          .rows = height,
                          .to_pitch_bytes = to_pitch,
                          .from_pitch_bytes = from_pitch,
                          .kind = kind});
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    return copy(runtime, {.name = "cudaMemcpy2DAsync",
                          .to = to,
                          .from = from,
                          .width_bytes = width,
                          .rows = height,
                          .to_pitch_bytes = to_pitch,
                          .from_pitch_bytes = from_pitch,
                          .kind = kind,
                          .stream = stream,
                          .asynchronous = true});
  });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  return api([&](Runtime& runtime) {
    return copy_to_symbol(runtime, {"cudaMemcpyToSymbol", symbol, bytes, offset},
                          {.from = from, .kind = kind});
  });
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    return copy_to_symbol(runtime, {"cudaMemcpyToSymbolAsync", symbol, bytes, offset},
                          {.from = from, .kind = kind, .stream = stream, .asynchronous = true});
  });
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  return api([&](Runtime& runtime) {
    return copy_from_symbol(runtime, {"cudaMemcpyFromSymbol", symbol, bytes, offset},
                            {.to = to, .kind = kind});
  });
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    return copy_from_symbol(runtime, {"cudaMemcpyFromSymbolAsync", symbol, bytes, offset},
                            {.to = to, .kind = kind, .stream = stream, .asynchronous = true});
  });
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return api([&](Runtime& runtime) {
    if (!address) return cudaErrorInvalidValue;
    return symbol_address(runtime, {"cudaGetSymbolAddress", symbol, 0, 0}, address);
  });
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  return api([&](Runtime& runtime) {
    if (!bytes) return cudaErrorInvalidValue;
    const auto found = runtime.images.find_symbol(symbol);
    if (found.ok()) *bytes = found.bytes;
    return found.error;
  });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return api([&](Runtime& runtime) {
    return fill(runtime, {.name = "cudaMemset", .to = to, .value = value, .width_bytes = bytes});
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    return fill(runtime, {.name = "cudaMemsetAsync",
                          .to = to,
                          .value = value,
                          .width_bytes = bytes,
                          .stream = stream});
  });
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return api([&](Runtime& runtime) {
    return fill(runtime, {.name = "cudaMemset2D",
                          .to = to,
                          .value = value,
                          .width_bytes = width,
                          .rows = height,
                          .pitch_bytes = pitch});
  });
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return api([&](Runtime& runtime) {
    return fill(runtime, {.name = "cudaMemset2DAsync",
                          .to = to,
                          .value = value,
                          .width_bytes = width,
                          .rows = height,
                          .pitch_bytes = pitch,
                          .stream = stream});
  });
}
