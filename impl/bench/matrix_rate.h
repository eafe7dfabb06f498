// Purpose: the fp16 matrix rate of the device, measured with cuBLAS.
// Contract: flop/s of a product of square matrices; 0 where cuBLAS cannot be loaded.
#pragma once

namespace kvattn::bench {

double matrix_rate();

}  // namespace kvattn::bench
