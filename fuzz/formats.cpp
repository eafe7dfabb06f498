// Fuzz target: everything that reads bytes which somebody else wrote. The first byte of an input
// chooses the reader, the rest is what it reads (make_seeds writes such files). A reader must
// answer, with a value or with one message of bounded length; what it writes it must read back.
// Links no plugin, no device, no judge.
#include "harness/core/formats.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "harness/case/features.h"
#include "harness/case/json.h"
#include "harness/case/safetensors.h"
#include "harness/case/show.h"
#include "harness/case/side_car.h"
#include "harness/case/timeline.h"
#include "harness/dump/import.h"
#include "harness/dump/npz.h"
#include "harness/engine/engine_state.h"
#include "harness/engine/engine_wire.h"
#include "harness/plan/kv_model.h"
#include "harness/run/wire.h"
#include "harness/simt/ptx/cfg.h"
#include "harness/simt/ptx/fatbin.h"
#include "harness/simt/ptx/parse.h"
#include "harness/simt/ptx/print.h"
#include "harness/trace/trace.h"

namespace kv::fuzzing {
namespace {

constexpr size_t kMessageBytesMax = 4096;
constexpr uint64_t kUnpackedBytesMax = 1 << 20;  // of a fat binary's entry: time, not safety

using Input = std::span<const uint8_t>;

/// A claim about the tree's own code that an input has refuted.
void must(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: does not hold: %s\n", claim);
  std::abort();
}

template <class T>
bool answered(const Result<T>& result) {
  if (result.ok()) return true;
  const std::string& message = result.error().message;
  must(!message.empty(), "a refusal says why");
  must(message.size() <= kMessageBytesMax, "a refusal's message is bounded");
  return false;
}

std::string text_of(Input bytes) { return {bytes.begin(), bytes.end()}; }

void numbers(Input bytes) {
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    double value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    uint32_t bits = 0;
    std::memcpy(&bits, bytes.data(), sizeof bits);
    for (const DType type :
         {DType::kF32, DType::kF16, DType::kBf16, DType::kE4m3, DType::kE5m2, DType::kI8}) {
      const uint32_t width = 8 * dtype_bytes(type), mask = 0xffffffffU >> (32 - width);
      const double known = decode(type, bits & mask);
      if (!std::isnan(known) && !(type == DType::kI8 && known == -128)) {
        must(decode(type, encode(type, known)) == known, "decode then encode keeps the value");
      }
      if (std::isnan(value)) continue;
      must((encode(type, value) & ~mask) == 0, "an encoding fits its type");
      const double low = decode(type, encode_down(type, value));
      const double high = decode(type, encode_up(type, value));
      const double near = decode(type, encode(type, value));
      if (std::isnan(low) || std::isnan(high) || std::isnan(near) || type == DType::kI8) continue;
      if (std::isinf(near)) continue;  // beyond the largest, rounding down stays finite
      must(low <= value && value <= high, "directed rounding encloses the value");
      must(near == low || near == high, "the nearest is one of the two neighbours");
    }
  }
}

void ptx_text(std::string text) {
  const auto module = simt::ptx::parse_module(std::move(text));
  if (!answered(module)) return;
  for (const simt::ptx::Function& function : (*module)->functions) {
    simt::ptx::build_cfg(function);
    for (const simt::ptx::Instruction& i : function.code) {
      must(!simt::ptx::instruction_text(function, i).empty(), "an instruction has a text");
    }
  }
}

void ptx(Input bytes) { ptx_text(text_of(bytes)); }

void fat_binary(Input bytes) {
  const auto entries = simt::ptx::read_fatbin(bytes);
  if (!answered(entries)) return;
  for (const simt::ptx::FatbinEntry& entry : *entries) {
    if (entry.kind != simt::ptx::FatbinEntry::Kind::kPtx) continue;
    if (entry.raw_bytes > kUnpackedBytesMax) continue;
    const auto text = simt::ptx::ptx_text(entry);
    if (answered(text)) must(text->size() <= kUnpackedBytesMax, "a text is as long as declared");
  }
  static_cast<void>(answered(simt::ptx::select_ptx(std::span(*entries).first(0), 80)));
}

void case_json(Input bytes) {
  const auto c = parse_case(text_of(bytes), "input");
  if (!answered(c)) return;
  const std::string text = case_to_json(*c);
  const auto again = parse_case(text, "again");
  must(again.ok() && *again == *c, "a case reads back as it was");
  must(case_to_json(*again) == text, "the canonical text is one");
  // The walk over a large case takes as long as the case is large.
  if (c->ops.size() > 64 || bytes.size() > 1 << 16) return;
  static_cast<void>(answered(Timeline::create(*c)));
}

void azure(Input bytes) { static_cast<void>(answered(read_azure(text_of(bytes), "input"))); }

void mooncake(Input bytes) {
  const auto requests = read_mooncake(text_of(bytes), "input");
  if (!answered(requests) || requests->size() > 16) return;
  static_cast<void>(answered(trace_to_case(*requests, {.requests = 2, .scale = 0.001})));
}

void model_config(Input bytes) {
  static_cast<void>(answered(read_kv_model(text_of(bytes), "input")));
}

template <class Decode, class Encode>
void reads_back(ByteSpan payload, Decode decode, Encode encode) {
  const auto first = decode(payload);
  if (!first) return;
  const Bytes bytes = encode(*first);
  const auto second = decode(bytes);
  must(second.has_value(), "what was read can be written and read");
  must(encode(*second) == bytes, "the written form is one");
}

void reports(Input bytes) {
  const ByteSpan payload = std::as_bytes(bytes);
  reads_back(payload, decode_hello, [](const Hello& h) { return encode_hello(h); });
  reads_back(payload, decode_request, [](const RunRequest& r) { return encode_request(r); });
  const auto numbered = [](const Numbered& n) {
    const auto* operation = std::get_if<OpObservation>(&n.what);
    return operation != nullptr ? encode_operation(n.number, *operation)
                                : encode_end(n.number, std::get<RunEnd>(n.what));
  };
  reads_back(payload, decode_operation, numbered);
  reads_back(payload, decode_end, numbered);
}

void engine_wire(Input bytes) {
  const ByteSpan payload = std::as_bytes(bytes);
  reads_back(payload, decode_engine_request, [](const EngineRequest& r) { return encode(r); });
  const auto decode_first = [](ByteSpan bytes) {  // what a reply before it told is not known
    PagesHeard heard;
    return decode_engine_reply(bytes, heard);
  };
  reads_back(payload, decode_first, [](const EngineReply& r) {
    PagesTold told;
    return encode(r, told);
  });
  if (const auto reply = decode_first(payload); reply && reply->target)
    static_cast<void>(answered(check_shape(*reply->target)));
}

/// A dump becomes a case whose side-car can be read, or says why not.
void dump_of(const TensorFile& file, const char* prefix) {
  const auto made = import_dump(file, {.name = "input", .prefix = prefix});
  if (!answered(made)) return;
  auto side_car = parse_safetensors(made->side_car, "side-car");
  must(side_car.ok(), "a side-car that was written can be read");
  static_cast<void>(answered(SideCar::parse(std::move(side_car).value(), "side-car")));
}

void dump(const TensorFile& file) {
  dump_of(file, "");
  dump_of(file, "layers.{}.");
}

void tensors(Input bytes) {
  auto file = parse_safetensors(text_of(bytes), "input");
  if (!answered(file)) return;
  dump(*file);
  static_cast<void>(answered(SideCar::parse(std::move(file).value(), "input")));
}

void arrays(Input bytes) {
  const std::string text = text_of(bytes);
  const auto file = parse_npz(text, "input");
  if (answered(file)) dump(*file);
}

// The order is that of make_seeds; new readers come last.
constexpr std::array<void (*)(Input), 11> kReaders = {
    numbers,      ptx,     fat_binary,  case_json, azure, mooncake,
    model_config, reports, engine_wire, tensors,   arrays};

}  // namespace
}  // namespace kv::fuzzing

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kv::fuzzing;
  if (size == 0) return 0;
  kReaders[data[0] % kReaders.size()]({data + 1, size - 1});
  return 0;
}
