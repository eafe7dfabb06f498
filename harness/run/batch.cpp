#include "harness/run/batch.h"

#include <algorithm>
#include <limits>

#include "harness/core/philox.h"

namespace kv {
namespace {

constexpr uint64_t kTailUse = 0x7461696c;  // "tail": this use of the data seed

/// What stands in the block table where nothing needs to stand.
int32_t garbage_page(const Case& c, const Timeline& timeline, uint32_t op_index, uint64_t entry) {
  const auto random = Philox{c.data.seed}.block(kTailUse << 32 | op_index, entry);
  const auto free = timeline.free_pages();
  const auto page_count = static_cast<int32_t>(c.pool.page_count);
  switch (random[0] % 4) {
    case 0:
      return -1;
    case 1:
      return page_count + static_cast<int32_t>(random[1] % 3);
    case 2:
      return std::numeric_limits<int32_t>::max();
    default:
      return free.empty() ? page_count : static_cast<int32_t>(free[random[1] % free.size()].value);
  }
}

void append_row(const Case& c, const Sequence& sequence, const PlannedRow& row, Batch& batch) {
  const uint32_t first_slot = row.kv_length - row.append_slots;
  batch.first_slots.push_back(static_cast<int32_t>(first_slot));
  batch.query_lengths.push_back(static_cast<int32_t>(row.queries));
  batch.kv_lengths.push_back(static_cast<int32_t>(row.kv_length));
  batch.key_begin.push_back(static_cast<int32_t>(row.key_begin));
  batch.key_end.push_back(static_cast<int32_t>(row.key_end));
  for (uint32_t slot = first_slot; slot < row.kv_length; ++slot) {
    batch.append_positions.push_back(sequence.slots[slot].position);
    const PageId page = sequence.pages[slot / c.pool.page_slots];
    const auto& written = batch.written_pages;
    if (written.empty() || written.back() != page) batch.written_pages.push_back(page);
    if (!sequence.slots[slot].pad) batch.written_slots.push_back({page, slot % c.pool.page_slots});
  }
  for (uint32_t query = 0; query < row.queries; ++query) {
    const Slot slot = slot_or_tokenless(c, sequence, query_slot(row, query));
    batch.query_positions.push_back(slot.position);
    batch.pad_queries.push_back(slot.pad);
  }
  batch.appended_tokens += row.append_slots;
  batch.query_tokens += row.queries;
  batch.append_offsets.push_back(static_cast<int32_t>(batch.appended_tokens));
  batch.query_offsets.push_back(static_cast<int32_t>(batch.query_tokens));
}

void fill_block_table(const Case& c, const Timeline& timeline, const PlannedStep& step,
                      Batch& batch) {
  batch.block_table.reserve(uint64_t{batch.rows} * batch.table_columns);
  for (const PlannedRow& row : step.rows) {
    for (const PageId page : timeline.sequence(row.request).pages)
      batch.block_table.push_back(static_cast<int32_t>(page.value));
    const uint64_t row_end = (uint64_t{row.batch_slot} + 1) * batch.table_columns;
    while (batch.block_table.size() < row_end)
      batch.block_table.push_back(
          garbage_page(c, timeline, step.op_index, batch.block_table.size()));
  }
}

}  // namespace

Batch make_batch(const Case& c, const Timeline& timeline, const PlannedStep& step) {
  Batch batch;
  batch.rows = static_cast<uint32_t>(step.rows.size());
  batch.append_offsets.push_back(0);
  batch.query_offsets.push_back(0);
  size_t pages_max = 0;
  for (const PlannedRow& row : step.rows) {
    const Sequence& sequence = timeline.sequence(row.request);
    pages_max = std::max(pages_max, sequence.pages.size());
    append_row(c, sequence, row, batch);
  }
  batch.table_columns = static_cast<uint32_t>(pages_max) + 1;
  fill_block_table(c, timeline, step, batch);
  batch.mask = make_mask(c, timeline, step);
  batch.tree = make_tree_mask(timeline, step);
  std::sort(batch.written_pages.begin(), batch.written_pages.end());
  return batch;
}

}  // namespace kv
