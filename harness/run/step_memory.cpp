#include "harness/run/step_memory.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "harness/run/host_bytes.h"

namespace kv {
namespace {

/// What a workspace holds before a call: "contents are arbitrary".
std::byte workspace_poison(Poison poison) {
  return poison == Poison::kFiniteHuge ? std::byte{0x7b} : std::byte{0xff};
}

Result<void> add_red_zone(const DeviceBuffer& buffer, const char* name,
                          std::vector<Trespass>& found) {
  KV_ASSIGN_OR_RETURN(const auto damage, buffer.damaged_red_zone(name));
  if (damage) found.push_back(*damage);
  return {};
}

uint32_t element_bits(std::span<const std::byte> bytes, uint64_t element, uint32_t element_bytes) {
  uint32_t bits = 0;
  std::memcpy(&bits, &bytes[element * element_bytes], element_bytes);
  return bits;
}

struct Elements {
  const char* name = "";
  std::span<const std::byte> now;  // what the buffer holds
  uint32_t bytes = 0;              // of one
  std::function<bool(uint64_t)> is_judged;
};

/// Reports the first element that holds undefined data although somebody has written it.
void report_undefined_element(const DeviceBuffer& buffer, const Elements& elements) {
  const uint64_t size = elements.bytes;
  for (uint64_t at = 0; at < buffer.bytes();) {
    const DeviceBuffer::Run run = buffer.first_undefined(at, buffer.bytes() - at);
    if (run.bytes == 0) return;
    for (at = run.offset / size * size; at < run.offset + run.bytes; at += size) {
      const auto bytes = elements.now.subspan(at, size);
      const bool unwritten =
          std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == kOutputCanary; });
      if (unwritten || !elements.is_judged(at / size)) continue;
      return buffer.report_undefined(
          {at, size}, std::string(elements.name) + " element " + std::to_string(at / size));
    }
  }
}

}  // namespace

Result<InputBuffer> InputBuffer::upload(const CudaRuntime& runtime, std::string name,
                                        std::vector<std::byte> bytes) {
  InputBuffer input;
  input.name_ = std::move(name);
  input.host_ = std::move(bytes);
  KV_ASSIGN_OR_RETURN(input.buffer_, DeviceBuffer::allocate(runtime, input.host_.size()));
  KV_RETURN_IF_ERROR(input.buffer_.upload(input.host_));
  input.buffer_.set_access(0, input.host_.size(), KV_SIMT_ACCESS_READ);
  return input;
}

Result<InputBuffer> InputBuffer::upload_rows(const CudaRuntime& runtime, std::string name,
                                             std::vector<std::byte> rows, const RowGaps& gaps) {
  KV_ASSIGN_OR_RETURN(InputBuffer input,
                      upload(runtime, std::move(name), with_gaps(std::move(rows), gaps)));
  close_gaps(input.buffer_, gaps);
  return input;
}

Result<void> InputBuffer::add_trespasses(std::vector<Trespass>& found) const {
  HostBytes now(host_.size());
  KV_RETURN_IF_ERROR(buffer_.download(now.span()));
  if (auto change = first_change(name_, host_, now.span())) found.push_back(std::move(*change));
  return add_red_zone(buffer_, name_.c_str(), found);
}

Result<StepTables> StepTables::upload(const Batch& batch, const CudaRuntime& runtime) {
  StepTables t;
  const auto put = [&](InputBuffer& to, const char* name, const auto& numbers) -> Result<void> {
    KV_ASSIGN_OR_RETURN(to, InputBuffer::upload(runtime, name, bytes_of(numbers)));
    return {};
  };
  KV_RETURN_IF_ERROR(put(t.table, "block_table", batch.block_table));
  KV_RETURN_IF_ERROR(put(t.append_offsets, "token_offsets", batch.append_offsets));
  KV_RETURN_IF_ERROR(put(t.first_slots, "first_slots", batch.first_slots));
  KV_RETURN_IF_ERROR(put(t.append_positions, "positions", batch.append_positions));
  KV_RETURN_IF_ERROR(put(t.query_offsets, "query_offsets", batch.query_offsets));
  KV_RETURN_IF_ERROR(put(t.query_positions, "query_positions", batch.query_positions));
  KV_RETURN_IF_ERROR(put(t.kv_lengths, "kv_lengths", batch.kv_lengths));
  KV_RETURN_IF_ERROR(put(t.key_begin, "key_begin", batch.key_begin));
  KV_RETURN_IF_ERROR(put(t.key_end, "key_end", batch.key_end));
  if (!batch.mask.bytes.empty()) KV_RETURN_IF_ERROR(put(t.mask, "mask", batch.mask.bytes));
  if (batch.tree.words.empty()) return t;
  KV_RETURN_IF_ERROR(put(t.tree, "tree_mask", batch.tree.words));
  KV_RETURN_IF_ERROR(put(t.tree_first_slots, "tree_first_slots", batch.tree.first_slots));
  return t;
}

Result<void> StepTables::add_trespasses(std::vector<Trespass>& found) const {
  for (const InputBuffer* input :
       {&table, &append_offsets, &first_slots, &append_positions, &query_offsets, &kv_lengths,
        &key_begin, &key_end, &mask, &tree, &tree_first_slots, &query_positions})
    KV_RETURN_IF_ERROR(input->add_trespasses(found));
  return {};
}

LayerMemory::LayerMemory(const Shape& shape, const kv_conventions& conventions, Size size)
    : shape_(&shape), conventions_(conventions), size_(size) {
  size_.output.row_bytes =
      uint64_t{shape.query_heads} * shape.head_dim_v * dtype_bytes(shape.output_dtype);
}

Result<void> LayerMemory::allocate_outputs(const CudaRuntime& runtime) {
  const uint64_t rows = uint64_t{size_.query_tokens} * shape_->query_heads;
  const uint64_t bytes = size_.output.span_bytes(size_.query_tokens);
  KV_ASSIGN_OR_RETURN(output, DeviceBuffer::allocate(runtime, bytes));
  close_gaps(output, size_.output);
  KV_ASSIGN_OR_RETURN(lse, DeviceBuffer::allocate(runtime, rows * sizeof(float)));
  return {};
}

Result<void> LayerMemory::spoil_outputs(const DeviceBuffer& workspace, Poison poison) const {
  KV_RETURN_IF_ERROR(output.fill(kOutputCanary));
  KV_RETURN_IF_ERROR(lse.fill(kOutputCanary));
  KV_RETURN_IF_ERROR(workspace.fill(workspace_poison(poison)));
  for (const DeviceBuffer* buffer : {&output, &lse, &workspace})
    buffer->set_undefined(0, buffer->bytes());
  return {};
}

Tensor lse_tensor(const Shape& shape, const kv_conventions& conventions, void* data,
                  int64_t tokens) {
  const int64_t heads = shape.query_heads;
  if (conventions.lse_layout == KV_LSE_HEAD_MAJOR) {
    return Tensor(data, kDlFloat32, {heads, tokens});
  }
  return Tensor(data, kDlFloat32, {tokens, heads});
}

std::vector<float> token_major(const Shape& shape, const kv_conventions& conventions,
                               std::span<const float> stored) {
  std::vector<float> result(stored.begin(), stored.end());
  if (conventions.lse_layout != KV_LSE_HEAD_MAJOR) return result;
  const uint64_t heads = shape.query_heads, tokens = stored.size() / heads;
  for (uint64_t head = 0; head < heads; ++head)
    for (uint64_t token = 0; token < tokens; ++token)
      result[token * heads + head] = stored[head * tokens + token];
  return result;
}

Tensor LayerMemory::lse_tensor() const {
  return kv::lse_tensor(*shape_, conventions_, lse.data(), size_.query_tokens);
}

Tensor LayerMemory::output_tensor() const {
  const int64_t heads = shape_->query_heads, dims = shape_->head_dim_v;
  const auto stride =
      static_cast<int64_t>(size_.output.stride_bytes() / dtype_bytes(shape_->output_dtype));
  return Tensor(output.data(), dl_type(shape_->output_dtype), {size_.query_tokens, heads, dims},
                {stride, dims, 1});
}

void LayerMemory::report_undefined(std::span<const std::byte> stored_output,
                                   std::span<const float> stored_lse,
                                   const std::vector<bool>& pad_queries) const {
  const uint64_t heads = shape_->query_heads, tokens = size_.query_tokens;
  const uint64_t element_bytes = dtype_bytes(shape_->output_dtype);
  const RowGaps& gaps = size_.output;
  report_undefined_element(output, {.name = "the output",
                                    .now = stored_output,
                                    .bytes = static_cast<uint32_t>(element_bytes),
                                    .is_judged = [&](uint64_t element) {
                                      const uint64_t at = element * element_bytes;
                                      return at % gaps.stride_bytes() < gaps.row_bytes &&
                                             !pad_queries[at / gaps.stride_bytes()];
                                    }});
  const bool head_major = conventions_.lse_layout == KV_LSE_HEAD_MAJOR;
  report_undefined_element(lse,
                           {.name = "the LSE",
                            .now = std::as_bytes(stored_lse),
                            .bytes = sizeof(float),
                            .is_judged = [&](uint64_t element) {
                              return !pad_queries[head_major ? element % tokens : element / heads];
                            }});
}

Result<LayerResult> LayerMemory::read_result(const std::vector<bool>& pad_queries) const {
  LayerResult result;
  result.layer = size_.layer;
  std::vector<std::byte> stored_output(output.bytes());
  KV_RETURN_IF_ERROR(output.download(stored_output));
  std::vector<float> stored(lse.bytes() / sizeof(float));
  KV_RETURN_IF_ERROR(lse.download(std::as_writable_bytes(std::span(stored))));
  report_undefined(stored_output, stored, pad_queries);
  result.output = without_gaps(std::move(stored_output), size_.output);
  result.lse = token_major(*shape_, conventions_, stored);
  return result;
}

Result<void> LayerMemory::add_trespasses(std::vector<Trespass>& found) const {
  for (const InputBuffer* input : {&key, &value, &query, &alibi_slopes, &sinks})
    KV_RETURN_IF_ERROR(input->add_trespasses(found));
  KV_RETURN_IF_ERROR(add_red_zone(output, "output", found));
  KV_RETURN_IF_ERROR(add_output_gap(found));
  return add_red_zone(lse, "lse", found);
}

Result<void> LayerMemory::add_output_gap(std::vector<Trespass>& found) const {
  if (size_.output.gap_bytes == 0) return {};
  std::vector<std::byte> stored(output.bytes());
  KV_RETURN_IF_ERROR(output.download(stored));
  if (auto damage = damaged_gap("output", stored, size_.output)) found.push_back(*damage);
  return {};
}

void add_repeat_differences(const Shape& shape, const LayerResult& first, const LayerResult& again,
                            uint32_t repeat, std::vector<RepeatDifference>& found) {
  const auto compare = [&](bool lse, std::span<const std::byte> want,
                           std::span<const std::byte> got, uint32_t element_bytes) {
    if (std::memcmp(want.data(), got.data(), want.size()) == 0) return;
    RepeatDifference difference{.layer = first.layer, .repeat = repeat, .lse = lse};
    for (uint64_t i = 0; i < want.size() / element_bytes; ++i) {
      const uint32_t w = element_bits(want, i, element_bytes);
      const uint32_t g = element_bits(got, i, element_bytes);
      if (w == g) continue;
      if (difference.elements_changed++ > 0) continue;
      difference.element = i;
      difference.want_bits = w;
      difference.got_bits = g;
    }
    found.push_back(difference);
  };
  compare(false, first.output, again.output, dtype_bytes(shape.output_dtype));
  compare(true, std::as_bytes(std::span(first.lse)), std::as_bytes(std::span(again.lse)),
          sizeof(float));
}

}  // namespace kv
