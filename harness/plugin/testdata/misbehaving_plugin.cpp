// The host plugin with one fault, which the environment variable KVERIFY_TEST_FAULT names. Each is
// expected to become one finding or one clear error, and nothing worse.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "harness/plugin/testdata/host_attention.h"

using namespace kv::testdata;

namespace {

constexpr int kToDevice = 1, kToHost = 2, kOnDevice = 3;
const std::vector<uint8_t> kRubbish(64, 0x2a);

bool fault_is(const char* name) {
  const char* fault = std::getenv("KVERIFY_TEST_FAULT");
  return fault != nullptr && std::strcmp(fault, name) == 0;
}

/// True in the first process that asks, false in later ones.
bool first_process() {
  const char* marker = std::getenv("KVERIFY_TEST_MARKER");
  return marker != nullptr && access(marker, F_OK) != 0 && creat(marker, 0600) >= 0;
}

void die_or_stall() {
  if (fault_is("segfault")) raise(SIGSEGV);
  if (fault_is("exit")) std::exit(0);
  if (fault_is("hang"))
    for (;;) usleep(1000);
  if (fault_is("memory"))
    for (;;) std::memset(std::malloc(8 << 20), 1, 8 << 20);
}

/// About one case in a hundred, by the bytes of what it asks: the same ones in every process.
bool canary_sings(const kv_attend_args& args) {
  const DLTensor& query = args.query;
  if (!fault_is("canary") || query.shape[0] == 0) return false;
  const int64_t row = query.shape[1] * query.shape[2];
  const bool dense = query.strides == nullptr || query.strides[0] >= row;
  const int64_t bytes = (dense ? query.shape[0] : 1) * row * (query.dtype.bits / 8);
  std::vector<uint8_t> asked(static_cast<size_t>(bytes < 8192 ? bytes : 8192));
  copy_bytes(asked.data(), query.data, asked.size(), kToHost);
  uint64_t hash = 0xcbf29ce484222325u, any = 0;
  for (const uint8_t byte : asked) {
    hash = (hash ^ byte) * 0x100000001b3u;
    any |= byte;
  }
  // Queries of zeros are the same in many cases: no hundredth of anything.
  return any != 0 && (hash >> 24) % 600 == 0;
}

/// Each number is moved by a few units in its last place: inside any bound, and no longer exact.
void coarsen(const DLTensor& lse) {
  std::vector<uint32_t> bits(static_cast<size_t>(lse.shape[0] * lse.shape[1]));
  if (bits.empty()) return;
  copy_bytes(bits.data(), lse.data, bits.size() * 4, kToHost);
  for (uint32_t& b : bits)
    if ((b & 0x7f800000) != 0x7f800000) b ^= 6;  // not that of an empty row
  copy_bytes(lse.data, bits.data(), bits.size() * 4, kToDevice);
}

/// Where the first token goes that is appended to the first row.
void* first_slot(const kv_append_args& args) {
  const DLTensor& key = args.cache.key;
  int32_t page = 0, slot = 0;
  copy_bytes(&slot, args.first_slots.data, 4, kToHost);
  const int64_t column = slot / key.shape[1];
  copy_bytes(&page, static_cast<char*>(args.cache.block_table.data) + 4 * column, 4, kToHost);
  const int64_t element = page * key.strides[0] + slot % key.shape[1] * key.strides[1];
  return static_cast<char*>(key.data) + element * (key.dtype.bits / 8);
}

/// The right bytes at `data`, by way of device memory of which the last `undefined` bytes are.
void detour(void* data, size_t bytes, size_t undefined) {
  void* other = nullptr;
  allocate_bytes(&other, bytes);
  copy_bytes(other, data, bytes, kOnDevice);
  undefine_bytes(static_cast<char*>(other) + bytes - undefined, undefined);
  copy_bytes(data, other, bytes, kOnDevice);
  free_bytes(other);
}

void damage(const kv_attend_args& args) {
  if (fault_is("undefined_output")) detour(args.output.data, 8, 2);
  if (fault_is("undefined_lse")) detour(args.lse.data, 8, 4);
  if (fault_is("detours")) detour(args.output.data, 8, 0), detour(args.lse.data, 8, 0);

  if (canary_sings(args)) copy_bytes(args.output.data, kRubbish.data(), 2, kToDevice);
  if (fault_is("writes_query")) copy_bytes(args.query.data, kRubbish.data(), 2, kToDevice);
  if (fault_is("writes_table"))
    copy_bytes(args.cache.block_table.data, kRubbish.data(), 4, kToDevice);
  if (fault_is("wrong_value")) copy_bytes(args.output.data, kRubbish.data(), 2, kToDevice);
  if (fault_is("coarse_lse")) coarsen(args.lse);
  if (fault_is("wrong_lse")) copy_bytes(args.lse.data, kRubbish.data(), 4, kToDevice);
}

/// Two faults with one fingerprint: each forgets a modifier of its own.
kv_status attend_forgetfully(const kv_attend_args& args, kv_error* why) {
  kv_attention_shape shape = *args.shape;
  if (fault_is("no_softcap") || fault_is("no_softcap_no_window")) shape.softcap = 0;
  if (fault_is("no_window") || fault_is("no_softcap_no_window")) shape.window_left = -1;
  kv_attend_args changed = args;
  changed.shape = &shape;
  return host_attend(&changed, why);
}

kv_status attend(const kv_attend_args* args, kv_error* why) {
  static int calls = 0;
  ++calls;
  die_or_stall();
  if (fault_is("refuses")) {
    std::memset(why->text, 0xc3, sizeof why->text);  // no end, and no text either
    return KV_REFUSED;
  }
  if (fault_is("status")) return static_cast<kv_status>(77);
  if (fault_is("unwritten") || fault_is("idle")) return KV_OK;
  // Though it said that it supports the shape.
  if (fault_is("little") && args->shape->query_heads != args->shape->kv_heads) {
    std::strcpy(why->text, "as many query heads as K/V heads, and nothing else");
    return KV_UNSUPPORTED;
  }
  const kv_status status = attend_forgetfully(*args, why);
  damage(*args);
  static const bool flaky = fault_is("flaky") && first_process();
  const bool late = fault_is("history") && calls > 40;
  if (flaky || late) copy_bytes(args->output.data, kRubbish.data(), 2, kToDevice);
  if (void* lost = nullptr; fault_is("leaks")) allocate_bytes(&lost, 16);
  if (fault_is("cuda_error")) copy_bytes(nullptr, nullptr, 16, 99);
  return status;
}

kv_status append(const kv_append_args* args, kv_error* why) {
  if (fault_is("idle")) return KV_OK;
  const kv_status status = host_append(args, why);
  if (fault_is("undefined_key")) detour(first_slot(*args), 8, 2);
  if (fault_is("detours")) detour(first_slot(*args), 8, 0);
  // The last byte of the pool: a slot that nobody has, unless every page is full.
  const DLTensor& key = args->cache.key;
  const int64_t last = (key.shape[0] * key.strides[0]) * (key.dtype.bits / 8) - 1;
  if (fault_is("writes_slack"))
    copy_bytes(static_cast<char*>(key.data) + last, kRubbish.data(), 1, kToDevice);
  return status;
}

kv_kernel_level kernel = {sizeof kernel, host_supports, host_plan, append, attend, nullptr};

}  // namespace

extern "C" const kv_plugin* kverify_plugin_v1(void) {
  static kv_plugin plugin = {
      .struct_bytes = sizeof plugin,
      .abi = KV_PLUGIN_ABI,
      .name = "misbehaving",
      .version = "1",
      .conventions = kHostConventions,
      .kernel = &kernel,
      .engine = nullptr,
  };
  static const std::string endless(100000, 'x');
  if (fault_is("load_segfault")) raise(SIGSEGV);
  if (fault_is("null")) return nullptr;
  if (fault_is("abi")) plugin.abi = 2;
  if (fault_is("short")) plugin.struct_bytes = 16;
  if (fault_is("no_function")) kernel.attend = nullptr;
  if (fault_is("no_level")) plugin.kernel = nullptr;
  if (fault_is("no_name")) plugin.name = nullptr;
  if (fault_is("endless_name")) plugin.name = endless.c_str();
  if (fault_is("garbage_name")) plugin.name = "\x01\xff\x1b[2J";
  if (fault_is("convention")) plugin.conventions.lse_base = 9;
  if (fault_is("promises_graph")) plugin.conventions.promises |= KV_PROMISE_GRAPH;
  return &plugin;
}
