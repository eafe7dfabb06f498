// Purpose: the fp16 matrix rate of the device, measured with cuBLAS.
// Contract: flop/s of a product of square matrices of `size` rows; 0 where cuBLAS cannot be loaded
//   or refuses.
#pragma once

namespace kvattn::bench {

double matrix_rate(int size);

}  // namespace kvattn::bench
