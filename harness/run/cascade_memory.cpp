#include "harness/run/cascade_memory.h"

#include <algorithm>

#include "harness/case/cascade.h"

namespace kv {

CascadeMemory::CascadeMemory(const Shape& shape, const kv_conventions& conventions, Size size)
    : shape_(&shape),
      conventions_(conventions),
      size_(size),
      merged_(shape, conventions, {.layer = size.layer, .query_tokens = size.tokens}) {}

uint64_t CascadeMemory::output_bytes() const {
  return uint64_t{size_.tokens} * shape_->query_heads * shape_->head_dim_v *
         dtype_bytes(shape_->output_dtype);
}
uint64_t CascadeMemory::lse_bytes() const {
  return uint64_t{size_.tokens} * shape_->query_heads * sizeof(float);
}

Result<CascadeMemory> CascadeMemory::create(const Case& c, const kv_conventions& conventions,
                                            const CudaRuntime& runtime, Size size) {
  CascadeMemory m(c.shape, conventions, size);
  KV_ASSIGN_OR_RETURN(m.outputs_, DeviceBuffer::allocate(runtime, size.parts * m.output_bytes()));
  KV_ASSIGN_OR_RETURN(m.lses_, DeviceBuffer::allocate(runtime, size.parts * m.lse_bytes()));
  KV_RETURN_IF_ERROR(m.merged_.allocate_outputs(runtime));
  for (const DeviceBuffer* buffer : {&m.outputs_, &m.lses_}) {
    KV_RETURN_IF_ERROR(buffer->fill(kOutputCanary));
    buffer->set_undefined(0, buffer->bytes());
  }
  KV_RETURN_IF_ERROR(m.merged_.spoil_outputs(DeviceBuffer(), c.pool.poison));
  return m;
}

Result<void> CascadeMemory::set_ranges(const Case& c, const PlannedStep& step, const Batch& batch,
                                       uint32_t part, const CudaRuntime& runtime) {
  const SlotRange range = cascade_range(c, step, part);
  std::vector<int32_t> begin, end;
  for (uint32_t row = 0; row < batch.rows; ++row) {
    const int64_t first = std::max<int64_t>(batch.key_begin[row], range.begin);
    const int64_t last = std::min<int64_t>(batch.key_end[row], range.end);
    begin.push_back(first < last ? static_cast<int32_t>(first) : 0);
    end.push_back(first < last ? static_cast<int32_t>(last) : 0);
  }
  KV_ASSIGN_OR_RETURN(begin_, InputBuffer::upload(runtime, "key_begin", bytes_of(begin)));
  KV_ASSIGN_OR_RETURN(end_, InputBuffer::upload(runtime, "key_end", bytes_of(end)));
  return {};
}

Tensor CascadeMemory::key_begin(uint32_t rows) const {
  return Tensor(begin_.data(), kDlInt32, {rows});
}
Tensor CascadeMemory::key_end(uint32_t rows) const { return Tensor(end_.data(), kDlInt32, {rows}); }

Tensor CascadeMemory::part_output(uint32_t part) const {
  return Tensor(static_cast<std::byte*>(outputs_.data()) + part * output_bytes(),
                dl_type(shape_->output_dtype),
                {size_.tokens, shape_->query_heads, shape_->head_dim_v});
}
Tensor CascadeMemory::part_lse(uint32_t part) const {
  return lse_tensor(*shape_, conventions_,
                    static_cast<std::byte*>(lses_.data()) + part * lse_bytes(), size_.tokens);
}
Tensor CascadeMemory::outputs() const {
  return Tensor(outputs_.data(), dl_type(shape_->output_dtype),
                {size_.parts, size_.tokens, shape_->query_heads, shape_->head_dim_v});
}
Tensor CascadeMemory::lses() const {
  const int64_t tokens = size_.tokens, heads = shape_->query_heads, parts = size_.parts;
  if (conventions_.lse_layout == KV_LSE_HEAD_MAJOR) {
    return Tensor(lses_.data(), kDlFloat32, {parts, heads, tokens});
  }
  return Tensor(lses_.data(), kDlFloat32, {parts, tokens, heads});
}

void CascadeMemory::close_states() const {
  for (const DeviceBuffer* buffer : {&outputs_, &lses_}) {
    buffer->set_access(0, buffer->bytes(), KV_SIMT_ACCESS_READ);
  }
}

Result<CascadeResult> CascadeMemory::read(const std::vector<bool>& pad_queries) const {
  CascadeResult result{.layer = size_.layer, .parts = {}, .merged = {}};
  std::vector<std::byte> outputs(outputs_.bytes());
  std::vector<float> lses(lses_.bytes() / sizeof(float));
  KV_RETURN_IF_ERROR(outputs_.download(outputs));
  KV_RETURN_IF_ERROR(lses_.download(std::as_writable_bytes(std::span(lses))));
  const size_t rows = lses.size() / size_.parts;
  for (uint32_t part = 0; part < size_.parts; ++part) {
    const auto o = std::span(outputs).subspan(part * output_bytes(), output_bytes());
    const auto l = std::span(lses).subspan(part * rows, rows);
    result.parts.push_back({.layer = size_.layer,
                            .output = {o.begin(), o.end()},
                            .lse = token_major(*shape_, conventions_, l)});
  }
  KV_ASSIGN_OR_RETURN(result.merged, merged_.read_result(pad_queries));
  return result;
}

Result<void> CascadeMemory::add_trespasses(std::vector<Trespass>& found) const {
  for (const auto& [buffer, name] : {std::pair(&outputs_, "states"), {&lses_, "states' lse"}}) {
    KV_ASSIGN_OR_RETURN(const auto damage, buffer->damaged_red_zone(name));
    if (damage) found.push_back(*damage);
  }
  KV_RETURN_IF_ERROR(begin_.add_trespasses(found));
  KV_RETURN_IF_ERROR(end_.add_trespasses(found));
  return merged_.add_trespasses(found);
}

}  // namespace kv
