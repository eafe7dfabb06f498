#include <algorithm>

#include "impl/plugin/engine_level.h"

namespace kvattn {

StubModel::StubModel(const kv_engine_config& config, const SlotLayout& layout)
    : fill_qkv_(config.fill_qkv),
      fill_scales_(config.fill_scales),
      harness_(config.harness),
      layout_(layout),
      is_dependent_(config.dependent_layers != 0) {
  const int64_t rows = int64_t{config.batch_slots} * config.step_tokens_max;
  query_.resize(rows * layout.query);
  key_.resize(rows * layout.key);
  value_.resize(rows * layout.value);
  key_scales_.resize(rows), value_scales_.resize(rows);
  head_scales_.resize(2 * layout.scales);
}

Status StubModel::fill(const kv_token& token, void* q, void* k, void* v) {
  if (const kv_status status = fill_qkv_(harness_, &token, q, k, v); status != KV_OK) {
    return failed("fill_qkv: status ", int{status}, " for request ", token.request, ", position ",
                  token.position, ", layer ", token.layer);
  }
  return {};
}

// A token, and a page, has one for all heads.
Status StubModel::fill_scales(const kv_token& token, int64_t row) {
  float* value = head_scales_.data() + layout_.scales;
  if (const kv_status status = fill_scales_(harness_, &token, head_scales_.data(), value);
      status != KV_OK) {
    return failed("fill_scales: status ", int{status}, " for request ", token.request);
  }
  key_scales_[row] = head_scales_[0];
  value_scales_[row] = *value;
  return {};
}

Status StubModel::project(const LayerCall& call) {
  const Batch& batch = *call.batch;
  if (is_dependent_ && call.layer > 0) KVATTN_RETURN_IF_ERROR(call.store->finish());
  for (size_t b = 0; b < batch.rows.size(); ++b) {
    const BatchRow& row = batch.rows[b];
    const kv_step_row& asked = step_->rows[b];
    // Histories are those of the last slots, as many as there are appended or asked for.
    const int64_t named = std::max<int64_t>(asked.append_tokens, asked.query_tokens);
    const int64_t first = row.length() - std::max(row.appended, row.queries);
    for (int64_t slot = first; slot < row.length(); ++slot) {
      const kv_token token = {.struct_bytes = sizeof token,
                              .request = index_of(row.request),
                              .history = asked.histories[named - (row.length() - slot)],
                              .position = row.position(slot),
                              .layer = static_cast<uint32_t>(call.layer),
                              .draft = call.draft};
      const int64_t append = slot - row.first_slot;
      const int64_t query = slot - (row.length() - row.queries);
      const int64_t append_row = row.append_begin + append;
      KVATTN_RETURN_IF_ERROR(fill(
          token, query < 0 ? nullptr : query_.data() + (row.query_begin + query) * layout_.query,
          append < 0 ? nullptr : key_.data() + append_row * layout_.key,
          append < 0 ? nullptr : value_.data() + append_row * layout_.value));
      const bool wants_scales = append >= 0 && call.tensors.key_scales != nullptr;
      if (wants_scales) KVATTN_RETURN_IF_ERROR(fill_scales(token, append_row));
    }
  }
  Store& store = *call.store;
  if (call.tensors.key_scales != nullptr) {
    const ByteCount bytes(batch.appended * int64_t{sizeof(float)});
    KVATTN_RETURN_IF_ERROR(store.upload(call.tensors.key_scales, key_scales_.data(), bytes));
    KVATTN_RETURN_IF_ERROR(store.upload(call.tensors.value_scales, value_scales_.data(), bytes));
  }
  KVATTN_RETURN_IF_ERROR(
      store.upload(call.tensors.key, key_.data(), ByteCount(batch.appended * layout_.key)));
  KVATTN_RETURN_IF_ERROR(
      store.upload(call.tensors.value, value_.data(), ByteCount(batch.appended * layout_.value)));
  return store.upload(call.tensors.query, query_.data(), ByteCount(batch.queries * layout_.query));
}

}  // namespace kvattn
