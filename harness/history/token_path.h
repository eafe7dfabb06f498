// Purpose: which tokens a request consists of, and the identity of each path of tokens.
// Contract: pure functions of the data seed. Equal side inputs and equal tokens give equal
// identities, anything else different ones; a token made up for one request is made up for no other
// and at no other time, so that sharers of a page diverge as soon as they part.
// Example:  uint64_t h = path_root(seed, side_input); h = path_next(h, token, 0);
#pragma once

#include <cstdint>

#include "harness/core/id.h"

namespace kv {

/// Identity of the empty path.
uint64_t path_root(uint64_t data_seed, uint64_t side_input);

/// Identity of a path that ends with `token` at slot `slot`; `history` is that of the path before.
uint64_t path_next(uint64_t history, uint64_t token, uint64_t slot);

/// The `count`-th token that was ever made up for the request.
uint64_t fresh_token(uint64_t data_seed, RequestId request, uint64_t count);

}  // namespace kv
