// Purpose: the kernels that mutation_test.cpp changes, behind plain functions.
// Contract: each function is one `<<<>>>` with 64 or 32 threads a block.
#pragma once

namespace kv::simt::programs {

struct RowShape {
  int rows = 1, columns = 64, skipped = 0;
};
/// out: three numbers for each row.
void launch_row_sums(const int* in, int* out, RowShape shape);

/// The first n of 32 elements become 5.
void launch_fill_first(int* out, int n);

}  // namespace kv::simt::programs
