// Purpose: the elementary functions of the double tier: the same bits on every machine, with an
// error that is stated and tested in every binade against MPFR, where libm states none.
// Contract: rounding to nearest, no flush to zero.
//   exp_nonpositive(x)  x <= 0        relative 2^-51; 0 below -708
//   log_at_least_one(x) x >= 1        relative 2^-50
//   exp2_of(x)          |x| <= 1000   relative 2^-51
//   tanh_of(x)          finite        relative 2^-50
#pragma once

namespace kv::reference {

double exp_nonpositive(double x);
double log_at_least_one(double x);
double exp2_of(double x);
double tanh_of(double x);

}  // namespace kv::reference
