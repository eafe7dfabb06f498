// Purpose: KV_WIDE compiles a function for AVX2 as well, and chooses when the program starts.
// Contract: for loops over integers and exact floats only, whose bits are the same either way. No
// effect with compilers and sanitizers that do not go with such functions.
// Example:  KV_WIDE void halve(int32_t* numbers, size_t count);
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define KV_WIDE [[gnu::target_clones("avx2", "default")]]
#else
#define KV_WIDE
#endif
