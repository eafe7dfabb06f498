/* kverify_plugin.h: what a library under check offers to kverify.
 *
 * Purpose: an attention kernel library, or an engine with its own KV cache, is checked by writing
 * one shared object that exports `kverify_plugin_v1`. The object is built once, with
 * `nvcc -cudart shared` (or linked with -lcudart), and the same file runs on a GPU and on
 * kverify's CPU device: kverify decides which libcudart.so.13 is loaded before it.
 *
 * Contract:
 *  - Plain C. Every struct starts with `struct_bytes`, set by whoever fills the struct; a reader
 *    uses only the fields that fit. Fields are only ever added at the end.
 *  - Tensors are DLPack tensors (third_party/dlpack.h). `data` is a device pointer (kDLCUDA), byte
 *    offset 0; `strides` are given in elements and are never NULL. The innermost stride is 1.
 *    A tensor's memory is exactly what its shape and strides span: every other byte is off limits.
 *  - Inputs are never written. Outputs are written in full for every live row.
 *  - Every call returns a kv_status. Anything but KV_OK has written nothing, and has put one
 *    sentence into kv_error.text. A bad argument is KV_REFUSED, before any launch.
 *  - Calls enqueue on `stream` and need not synchronise.
 *  - kverify calls one plugin from one thread, in a process of its own.
 *  - A kernel-level plugin keeps no device memory of its own beyond a call (module variables are
 *    fine): between two cases kverify frees everything on the device.
 *
 * Levels: a plugin offers either or both.
 *  - Kernel level: kverify owns all memory (pool, block tables, workspace) and makes it hostile.
 *  - Engine level: the plugin owns its cache; kverify sends operations and asks for snapshots.
 *
 * Example, in full:  impl/plugin.cpp.
 */
/* The comments beside the fields stand in columns. */
/* clang-format off */
#ifndef KVERIFY_PLUGIN_H_
#define KVERIFY_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#include "third_party/dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KV_PLUGIN_ABI = 1 };

typedef enum kv_status {
  KV_OK = 0,
  KV_REFUSED = 1,     /* the arguments break the contract; nothing changed */
  KV_UNSUPPORTED = 2, /* lawful, but not offered; nothing changed */
  KV_FAILED = 3,      /* the device or the plugin failed (a CUDA error, out of memory) */
  KV_EXHAUSTED = 4    /* engine level: lawful, but there is no room now (pages, batch slots, host
                         pages, budget); nothing changed, and it may succeed later */
} kv_status;

typedef struct kv_error {
  uint32_t struct_bytes;
  char text[508]; /* zero-terminated sentence: what, where, expected, got */
} kv_error;

/* ---------------------------------------------------------------- shape of a call */

enum { KV_CAUSAL_NONE = 0, KV_CAUSAL_TOP_LEFT = 1, KV_CAUSAL_BOTTOM_RIGHT = 2 };
enum { KV_ROPE_NONE = 0, KV_ROPE_NEOX = 1, KV_ROPE_INTERLEAVED = 2 };
enum { KV_PAD_LEFT = 1, KV_PAD_RIGHT = 2, KV_PAD_HOLES = 4 };
enum {
  KV_MASK_NONE = 0,
  KV_MASK_PACKED_BITS = 1, /* bit k % 32 of 32-bit word k / 32 set: key k visible */
  KV_MASK_BOOL_KEEP = 2,   /* 1: key visible */
  KV_MASK_BOOL_BLOCK = 3,  /* 1: key hidden */
  KV_MASK_ADDITIVE = 4     /* added to the logit; a key at -inf, or at the dtype's lowest finite
                              value, is hidden: a row that sees no other key is empty */
};
enum {
  KV_SCALE_NONE = 0,
  KV_SCALE_TENSOR = 1,
  KV_SCALE_HEAD = 2,
  KV_SCALE_TOKEN = 3,
  KV_SCALE_PAGE = 4
};

/* What every call with one configuration has in common: all that supports() may ask. */
typedef struct kv_attention_shape {
  uint32_t struct_bytes;
  uint32_t query_heads, kv_heads; /* query_heads is a multiple of kv_heads; head h reads kv head
                                     h / (query_heads / kv_heads) */
  uint32_t head_dim_k, head_dim_v;
  uint32_t page_slots;            /* slots (tokens) in one page */
  DLDataType query_dtype, kv_dtype, output_dtype;
  float scale;                    /* multiplies q.k; the fp32 value itself is the specification */
  float softcap;                  /* 0: none; else logit = softcap * tanh(scale*q.k / softcap) */
  uint32_t causal;                /* KV_CAUSAL_*; with q query rows and n key slots, row i sees key
                                     j when j <= i (top left) or j <= n - q + i (bottom right) */
  int64_t window_left;            /* -1: unlimited; else key j is visible only when
                                     j >= anchor(i) - window_left, inclusive, where anchor(i) is the
                                     causal limit of row i (bottom right when causal is none) */
  int64_t window_right;           /* -1: unlimited; else j <= anchor(i) + window_right, inclusive */
  uint32_t mask_encoding;         /* KV_MASK_* */
  DLDataType mask_dtype;          /* of an additive mask */
  uint32_t padding;               /* bit set of KV_PAD_*: which padding occurs in the batch */
  uint32_t alibi, sinks;          /* 1: slopes / sink logits are given for each query head */
  uint32_t rope, rope_dims;       /* KV_ROPE_*: append rotates K, attend rotates Q; dims: leading
                                     dimensions that are rotated; pair i (neox: i, i + dims/2;
                                     interleaved: 2i, 2i + 1) by position * theta^(-2i/dims) */
  double rope_theta;
  uint32_t kv_scale;              /* KV_SCALE_*: granularity of dequantisation scales */
  uint32_t tree;                  /* 1: rows of some steps carry a tree mask */
  uint32_t value_in_key;          /* 1: V is the first head_dim_v dimensions of K (latent attention
                                     in its absorbed form). The value cache, and append's value,
                                     are views of K's memory, with K's strides */
} kv_attention_shape;

/* One batch, described on the host, for planning. */
typedef struct kv_batch {
  uint32_t struct_bytes;
  uint32_t rows;                  /* requests in the batch */
  const int32_t* query_lengths;   /* [rows], host */
  const int32_t* kv_lengths;      /* [rows], host: slots in the cache, after append */
  uint32_t split_slots;           /* forced split size in slots; 0: the plugin chooses */
  const char* variant;            /* forced kernel variant; NULL: the plugin chooses */
} kv_batch;

/* Declared algorithm: what the error bound may assume. 0 / KV_ORDER_ANY: nothing is declared. */
enum { KV_ORDER_ANY = 0, KV_ORDER_ASCENDING = 1, KV_ORDER_DESCENDING = 2 };
enum { KV_ACCUMULATE_FMA = 1, KV_ACCUMULATE_MMA = 2 };
typedef struct kv_profile {
  uint32_t struct_bytes;
  uint32_t tile_slots;            /* keys for each online-softmax step; 0: undeclared */
  uint32_t order;                 /* KV_ORDER_* of tiles */
  uint32_t accumulate;            /* KV_ACCUMULATE_* ; 0: undeclared */
  DLDataType probability_dtype;   /* type that P is rounded to before P.V; float32: not rounded */
  uint32_t row_sum_of_rounded;    /* 1: l sums the rounded P; 0: the fp32 P */
  uint32_t splits;                /* key splits used for this batch; 1: none */
  uint32_t maximum_is_exact;      /* 1: P of a tile is taken relative to the running maximum, that
                                     tile included; 0: undeclared (the maximum may lag) */
} kv_profile;

typedef struct kv_plan {
  uint32_t struct_bytes;
  uint64_t workspace_bytes;       /* device scratch that run calls need; contents are arbitrary */
  char variant[64];               /* name of the kernel variant that will run */
  kv_profile profile;
  uint64_t plugin_words[16];      /* the plugin's own: kverify hands them back unread */
} kv_plan;

/* ---------------------------------------------------------------- kernel level */

/* The cache of one layer, as the plugin sees it. */
typedef struct kv_paged_cache {
  uint32_t struct_bytes;
  DLTensor key;                   /* [pages, page_slots, kv_heads, head_dim_k]; any page/slot/head
                                     strides, so both usual layouts arrive as strides */
  DLTensor value;                 /* [pages, page_slots, kv_heads, head_dim_v] */
  DLTensor block_table;           /* int32 [rows, pages_max]: page of slots p*page_slots... Entries
                                     past ceil(kv_length / page_slots) are garbage. */
  const float *key_scale, *value_scale; /* device, fp32, finite, not 0; NULL without scales
                                     (shape.kv_scale). An element is code * scale: append divides
                                     by it, attend multiplies. Tensor: [1]; head: [kv_heads];
                                     token: [pages, page_slots], of the slot; page: [pages]. Those
                                     of slots that are neither new nor visible are garbage */
} kv_paged_cache;

/* Write the K/V of new tokens to their slots. Slot s of row b lies in page
 * block_table[b][s / page_slots] at offset s % page_slots. */
typedef struct kv_append_args {
  uint32_t struct_bytes;
  const kv_attention_shape* shape;
  kv_paged_cache cache;
  DLTensor key, value;            /* [tokens, kv_heads, head_dim_k|v], in the query dtype when the
                                     cache is of 8-bit codes, else in kv_dtype. Codes: rounded to
                                     nearest even, saturating (e4m3 448, e5m2 57344, int8 +-127) */
  DLTensor token_offsets;         /* int32 [rows+1]: new tokens of row b are [o[b], o[b+1]) */
  DLTensor first_slots;           /* int32 [rows]: slot of row b's first new token, i.e. the stored
                                     length before the call */
  DLTensor positions;             /* int64 [tokens]: position ids, for RoPE */
  void* stream;                   /* cudaStream_t */
} kv_append_args;

typedef struct kv_attend_args {
  uint32_t struct_bytes;
  const kv_attention_shape* shape;
  const kv_plan* plan;            /* as plan() filled it for this batch */
  kv_paged_cache cache;
  DLTensor query;                 /* [tokens, query_heads, head_dim_k] */
  DLTensor query_offsets;         /* int32 [rows+1]: query rows of row b are [o[b], o[b+1]) */
  DLTensor kv_lengths;            /* int32 [rows]: key slots of row b, PAD slots included */
  DLTensor key_begin, key_end;    /* int32 [rows]: only slots in [begin, end) hold real tokens;
                                     0 and kv_length without padding */
  DLTensor output;                /* [tokens, query_heads, head_dim_v] */
  DLTensor lse;                   /* float32 [tokens, query_heads] or [query_heads, tokens], as
                                     conventions.lse_layout says; natural log or base 2 likewise */
  void* workspace;                /* plan->workspace_bytes bytes, aligned to 256; NULL when 0 */
  const DLTensor* mask;           /* NULL unless shape.mask_encoding; shape [B|1, H|1, Q|1, K], K in
                                     slots or (packed bits) words: row b, query head h, query row i
                                     of its request, slot k. Hides keys that causal limit, window,
                                     key_begin and key_end leave visible; its rows are aligned to
                                     one element only */
  const float *alibi_slopes, *sinks; /* device [query_heads], NULL unless used */
  const DLTensor* tree_mask;      /* packed 32-bit words [tokens, words]: bit k of row t set when
                                     slot tree_first_slots[b] + k of its request b is visible, as
                                     far as causal limit, window and mask leave it visible. Slots
                                     before the first are not restricted. NULL without a tree */
  const DLTensor* positions;      /* int64 [tokens], for RoPE; NULL unless used */
  void* stream;
  const DLTensor* tree_first_slots; /* int32 [rows]; NULL exactly when tree_mask is */
} kv_attend_args;

/* Several states of the same queries over disjoint sets of keys become one: what attend returned
 * for each, called with the same shape and other key_begin and key_end (a prefix that requests
 * share and what each has of its own; parts of a context). */
typedef struct kv_merge_args {
  uint32_t struct_bytes;
  const kv_attention_shape* shape;
  DLTensor outputs;               /* [states, tokens, query_heads, head_dim_v], output dtype */
  DLTensor lses;                  /* float32, for each state as conventions.lse_layout and lse_base
                                     say. A state whose queries saw nothing has the empty row's LSE;
                                     it weighs nothing */
  DLTensor output, lse;           /* as in kv_attend_args; the empty row where all states are */
  void* stream;
} kv_merge_args;

typedef struct kv_kernel_level {
  uint32_t struct_bytes;
  /* KV_OK, or KV_UNSUPPORTED with the reason. No device work. */
  kv_status (*supports)(const kv_attention_shape* shape, kv_error* why);
  /* Chooses a variant and says what it needs. No device work. */
  kv_status (*plan)(const kv_attention_shape* shape, const kv_batch* batch, kv_plan* out,
                    kv_error* why);
  kv_status (*append)(const kv_append_args* args, kv_error* why);
  kv_status (*attend)(const kv_attend_args* args, kv_error* why);
  /* Names that kv_batch.variant may force, ended by NULL; they live for ever. NULL: none. */
  const char* const* variants;
  kv_status (*merge)(const kv_merge_args* args, kv_error* why); /* NULL: not offered */
} kv_kernel_level;

/* ---------------------------------------------------------------- engine level */

typedef struct kv_engine_level kv_engine_level; /* kverify_engine.h */

/* ---------------------------------------------------------------- the plugin */

enum { KV_LSE_NATURAL = 0, KV_LSE_BASE_2 = 1 };
enum { KV_LSE_TOKEN_MAJOR = 0, KV_LSE_HEAD_MAJOR = 1 };
enum { KV_EMPTY_LSE_MINUS_INF = 0, KV_EMPTY_LSE_PLUS_INF = 1, KV_EMPTY_LSE_UNSPECIFIED = 2 };
enum {
  KV_PAD_ROWS_COMPUTED = 0,   /* as if live: O and LSE of the keys that the mask leaves */
  KV_PAD_ROWS_ZERO = 1,       /* O = 0, LSE = the empty row's */
  KV_PAD_ROWS_UNWRITTEN = 2,
  KV_PAD_ROWS_UNSPECIFIED = 3
};
/* Promised invariances: bits are equal across ... A check of one is a failure only if promised. */
enum {
  KV_PROMISE_DETERMINISTIC = 1, /* repeated calls, any schedule */
  KV_PROMISE_BATCH = 2,         /* a request alone or in any batch */
  KV_PROMISE_PAGE = 4,          /* any physical page placement */
  KV_PROMISE_SPLIT = 8,         /* any split size */
  KV_PROMISE_CHUNK = 16,        /* prefill whole, in chunks, or token by token */
  KV_PROMISE_LAYOUT = 32,       /* any strides of the cache, and of Q, K, V and O */
  KV_PROMISE_HEAD = 64,         /* a KV head with its query heads at any index; K and V repeated for
                                   each query head instead of shared */
  KV_PROMISE_CHANNEL = 128,     /* a channel of V at any index */
  KV_PROMISE_SCALE = 256,       /* K times a power of two and scale divided by it */
  KV_PROMISE_MASK = 512,        /* a mask in any encoding: the same keys hidden */
  KV_PROMISE_GRAPH = 1024       /* attend may be captured into a graph; launched from there, as
                                   often as one likes, it gives what the call gave */
};

typedef struct kv_conventions {
  uint32_t struct_bytes;
  uint32_t lse_base, lse_layout, empty_row_lse; /* an empty row's O is 0 */
  uint32_t pad_rows;
  uint32_t promises;
} kv_conventions;

typedef struct kv_plugin {
  uint32_t struct_bytes;
  uint32_t abi;                   /* KV_PLUGIN_ABI of the header it was built with */
  const char *name, *version;     /* "kvattn", "0.1.0" */
  kv_conventions conventions;
  const kv_kernel_level* kernel;  /* NULL: not offered */
  const kv_engine_level* engine;  /* NULL: not offered */
} kv_plugin;

/* The one symbol that a plugin exports. Never returns NULL; the struct lives for ever. */
const kv_plugin* kverify_plugin_v1(void);

#ifdef __cplusplus
}
#endif
#endif /* KVERIFY_PLUGIN_H_ */
