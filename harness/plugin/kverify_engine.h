/* kverify_engine.h: what an engine with its own KV cache offers to kverify.
 *
 * Purpose: kverify sends the operations of a request history (admit, step, fork, ...) and asks what
 * the engine believes (snapshot) and what its cache holds (read_slot, read_page; read_slots and
 * read_page_slots where many are read).
 *
 * Contract: that of kverify_plugin.h, and
 *  - Units: lengths, slots and tokens are counts of tokens; pages are physical page numbers of one
 *    pool that all layer groups share; a page belongs to one layer group at a time. Nothing is in
 *    bytes unless its name says so.
 *  - Every operation is atomic: anything but KV_OK has changed nothing that snapshot shows, evicted
 *    nothing, and has put its sentence into kv_error.text. KV_EXHAUSTED when there is no room now.
 *  - Pointers of arguments are read during the call only; outputs of a step are written until it is
 *    complete. Arrays of a snapshot live until the next call.
 *  - There is no padding in the cache: slot s of a request is its (s+1)-th token.
 *
 * Example, in full:  impl/plugin/engine_level.cpp.
 */
/* The comments beside the fields stand in columns. */
/* clang-format off */
#ifndef KVERIFY_ENGINE_H_
#define KVERIFY_ENGINE_H_

#include "kverify_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kv_engine kv_engine; /* the plugin's own */

/* ---------------------------------------------------------------- configuration */

/* One token of one layer, whose Q, K or V is asked for. */
typedef struct kv_token {
  uint32_t struct_bytes;
  uint32_t request;
  uint64_t history;               /* identity of the token path up to and including this token */
  int64_t position;               /* position id: position_offset + slot, when it was appended; in
                                     a tree + the slot that it would have behind its ancestors
                                     alone */
  uint32_t layer;                 /* of the model, or of the draft model when `draft` */
  uint32_t draft;                 /* 1: of the draft model, whose K and V are others */
} kv_token;

/* The model: Q, K and V before rotation and quantisation, in the query dtype, on the host.
 * q: [query_heads, head_dim_k]; k: [kv_heads, head_dim_k]; v: [kv_heads, head_dim_v]; each may be
 * NULL when it is not needed. A pure function of the token. Called inside step() only. */
typedef kv_status (*kv_fill_qkv)(void* harness, const kv_token* token, void* q, void* k, void* v);

/* Scales of a cache with shape.kv_scale: of this token's K and V in this layer, [kv_heads] each, on
 * the host. With KV_SCALE_TENSOR and KV_SCALE_HEAD every token of a layer has the same; a page has
 * those of the token that is appended to its first slot. A pure function. Called inside step(), and
 * inside create() with history 0 for the scales of tensors and heads. */
typedef kv_status (*kv_fill_scales)(void* harness, const kv_token* token, float* key, float* value);

/* Consecutive layers that share a window, and therefore a block table: group 0 has layers
 * [0, layers), group 1 those after it, and so on. */
typedef struct kv_layer_group {
  uint32_t struct_bytes;
  uint32_t layers;
  int64_t window_left;            /* inclusive, as in kv_attention_shape; -1: unlimited */
} kv_layer_group;

typedef struct kv_engine_config {
  uint32_t struct_bytes;
  const kv_attention_shape* shape; /* of every layer of both models, but for window_left */
  const kv_layer_group* groups;    /* [group_count], at least one */
  uint32_t group_count;
  uint32_t page_count;            /* of the pool */
  uint32_t host_page_count;       /* of the pool to which preempted requests are swapped; 0: none */
  uint32_t batch_slots;           /* requests that are active at once */
  uint32_t request_max;           /* requests that exist at once, preempted ones included */
  uint32_t context_limit;         /* slots of one request */
  uint32_t step_tokens_max;       /* tokens that one row of one step may append */
  uint32_t async_depth;           /* steps that may be in flight when step() returns; 0: none */
  double overcommit;              /* admitted worst cases <= overcommit * bytes of the pool */
  uint32_t prefix_cache;          /* 1: full pages are published and found again by admit */
  uint32_t draft_layers;          /* layers of the draft model, one group; 0: there is none */
  uint32_t draft_page_count;      /* of the draft model's own pool */
  void* harness;                  /* handed back to fill_qkv */
  kv_fill_qkv fill_qkv;
  uint32_t dependent_layers;      /* 1: layers follow from each other: outputs and lses of a layer
                                     are written before fill_qkv is asked for the next one's tokens
                                     in the same step */
  const float *alibi_slopes, *sinks; /* host [layers, then draft_layers][query_heads], read by
                                     create; NULL unless shape.alibi, shape.sinks; see
                                     kv_attend_args */
  kv_fill_scales fill_scales;     /* NULL unless shape.kv_scale: append divides by them */
} kv_engine_config;

/* ---------------------------------------------------------------- operations */

typedef struct kv_admission {
  uint32_t struct_bytes;
  uint32_t request;               /* an id that no existing request has */
  uint64_t owner;                 /* tenant: beams are reordered within one owner only */
  uint64_t side_input;            /* adapter or salt: part of the identity of every prefix */
  const uint64_t* tokens;         /* [prompt_tokens] token ids: equal ids under equal side inputs
                                     have equal K and V; compared in full, not by a hash alone */
  const uint64_t* histories;      /* [prompt_tokens] identities of the same token paths */
  uint64_t prompt_tokens;
  uint64_t slots_max;             /* the request never holds more slots: its worst case */
  int64_t position_offset;
} kv_admission;

/* What admit, fork, resume and restore say of the request. */
typedef struct kv_admitted {
  uint32_t struct_bytes;
  uint64_t handle;                /* for the rows of steps; not 0; no other request ever has it */
  uint64_t length;                /* slots that the cache holds already: the tokens from here on are
                                     to be appended by steps. May be all prompt_tokens */
  uint64_t draft_length;          /* the same of the draft cache, which has no prefix cache */
} kv_admitted;

/* Appends tokens at slot `length`, then attends with the queries of the last query_tokens slots. */
typedef struct kv_step_row {
  uint32_t struct_bytes;
  uint32_t request;
  uint64_t handle;                /* refused unless it is the request's own and still valid */
  uint64_t length;                /* refused unless it equals the stored length (of the draft cache
                                     when the step is the draft model's) */
  uint32_t append_tokens;         /* 0..step_tokens_max */
  uint32_t query_tokens;          /* 0..length + append_tokens, at most step_tokens_max */
  uint32_t speculative_tokens;    /* the last of the appended that a truncate may take back: they
                                     are not published, and windows do not advance by them, until
                                     a later append, or a truncate, settles which of them stay */
  DLDataType dtype;               /* of K and V to be stored: refused unless shape.kv_dtype */
  const uint64_t* tokens;         /* [append_tokens] */
  const uint64_t* histories;      /* [max(append_tokens, query_tokens)] of the last slots */
  const int32_t* tree_parents;    /* [append_tokens] or NULL: index of the parent, -1: the slot
                                     before the row. Not a chain: all appended tokens must be
                                     speculative, and until truncate and shift have left one path
                                     of the tree, every call that names the request but these two
                                     (shift within the tree), cancel, finish and reads is refused.
                                     What is left then is as if appended one by one */
  uint32_t cancel_before_layer;   /* 0: none. Else cancel() of the request arrives while the step
                                     runs, when this layer has not begun and the one before it has
                                     ended: when step() returns, the request is gone. Outputs of its
                                     row from this layer on are unspecified, all others are not
                                     touched. Refused from the step's number of layers on */
} kv_step_row;

enum { KV_LAYOUT_RAGGED = 0, KV_LAYOUT_PAD_LEFT = 1, KV_LAYOUT_PAD_RIGHT = 2 };
typedef struct kv_step {
  uint32_t struct_bytes;
  const kv_step_row* rows;        /* distinct requests; row i is batch index i */
  uint32_t row_count;
  uint32_t draft;                 /* 1: the draft model runs, on the draft cache */
  uint32_t layout;                /* KV_LAYOUT_*: how the engine lays out queries on the device */
  void* const* outputs;           /* [layers] host, each [sum of query_tokens, query_heads,
                                     head_dim_v] in the output dtype, ragged whatever the layout;
                                     NULL: no attention is asked for, only the appends */
  float* const* lses;             /* [layers] host, each as conventions.lse_layout says; NULL with
                                     outputs */
} kv_step;

enum { KV_PREEMPT_RECOMPUTE = 0, KV_PREEMPT_SWAP = 1 };

/* ---------------------------------------------------------------- what the engine believes */

enum { KV_REQUEST_ACTIVE = 0, KV_REQUEST_PREEMPTED = 1, KV_REQUEST_SWAPPED = 2 };
typedef struct kv_snapshot_request {
  uint32_t struct_bytes;
  uint32_t request, state;        /* KV_REQUEST_* */
  int32_t batch_slot;             /* -1 unless active */
  uint64_t owner, handle, side_input;
  uint64_t length;                /* stored slots, speculative ones included */
  int64_t position_offset;
  uint32_t page_count;            /* entries of each group's block table: ceil(length/page_slots) */
  const int32_t* pages;           /* [group_count][page_count]; -1: expired behind the window. Of a
                                     swapped request: pages of the host pool */
} kv_snapshot_request;

/* A node of the prefix tree: what admit can find. The prefix of a node is its parent's and then its
 * own tokens. Pages hold those own tokens, one page for each group that has published it. */
typedef struct kv_snapshot_prefix {
  uint32_t struct_bytes;
  int32_t parent;                 /* index of an earlier entry; -1: the empty prefix */
  uint64_t side_input;
  int64_t position_offset;        /* of the request's: part of the identity, as positions are */
  const uint64_t* tokens;         /* [page_slots] */
  const int32_t* pages;           /* [group_count]; -1: evicted, or never published */
  uint64_t identity;              /* of this prefix as long as it is there, and of no other one
                                     ever: its parent and tokens stay what they are, and kverify
                                     need not look at all tokens after each call. 0: not told */
} kv_snapshot_prefix;

/* Slots that the last operation copied before anything else, within the pool, in every layer of
 * the group: copy on write, shift, defrag. */
typedef struct kv_snapshot_copy {
  uint32_t struct_bytes;
  uint32_t group;
  uint32_t from_page, from_slot, to_page, to_slot, slots;
} kv_snapshot_copy;

/* Counted since create: a history that never did a thing proves nothing about it. */
typedef struct kv_engine_counters {
  uint32_t struct_bytes;
  uint64_t hit_pages, published_pages, evicted_pages, expired_pages, copied_slots;
  uint64_t swapped_out_pages, swapped_in_pages, fenced_pages;
} kv_engine_counters;

/* Free, fenced, cached and owned pages partition the pool. */
typedef struct kv_snapshot {
  uint32_t struct_bytes;
  uint32_t page_count, group_count, page_slots;
  const uint32_t* reference_counts; /* [page_count]: block tables that hold the page */
  const uint32_t* free_pages;       /* may be handed out now */
  uint32_t free_count;
  const uint32_t* fenced_pages;     /* held by nobody, waiting for a step in flight */
  uint32_t fenced_count;
  const uint32_t* cached_pages;     /* held by no request, published; next to be evicted first */
  uint32_t cached_count;
  const kv_snapshot_request* requests;
  uint32_t request_count;
  const kv_snapshot_prefix* prefixes; /* parents before their children */
  uint32_t prefix_count;
  uint32_t host_page_count;
  const uint32_t* host_free_pages;
  uint32_t host_free_count;
  const uint64_t* steps_in_flight;  /* of this cache, by the numbers of step(), ascending */
  uint32_t steps_in_flight_count;
  const kv_snapshot_copy* copies;
  uint32_t copy_count;
  kv_engine_counters counters;
} kv_snapshot;

enum { KV_CACHE_TARGET = 0, KV_CACHE_DRAFT = 1 };

/* One slot of one layer. key: [kv_heads, head_dim_k], value: [kv_heads, head_dim_v], in kv_dtype,
 * on the host: as they are stored, K rotated where shape.rope says so. */
typedef struct kv_slot_bytes {
  uint32_t struct_bytes;
  void *key, *value;
  float *key_scales, *value_scales; /* [kv_heads] each: what attend multiplies this slot's codes by;
                                     NULL unless shape.kv_scale */
} kv_slot_bytes;

/* ---------------------------------------------------------------- the level */

struct kv_engine_level {
  uint32_t struct_bytes;
  kv_status (*supports)(const kv_engine_config*, kv_error*);
  kv_status (*create)(const kv_engine_config*, kv_engine** out, kv_error*);
  void (*destroy)(kv_engine*);

  kv_status (*admit)(kv_engine*, const kv_admission*, kv_admitted* out, kv_error*);
  /* Steps are numbered from 1, in the order of launch, refused ones not counted. Steps above
   * async_depth are completed, oldest first, before step() returns. */
  kv_status (*step)(kv_engine*, const kv_step*, uint64_t* number, kv_error*);
  /* Waits for the step and for all before it. Refused unless it is in flight. */
  kv_status (*complete)(kv_engine*, uint64_t step, kv_error*);
  /* The child starts with everything that the parent holds. */
  kv_status (*fork)(kv_engine*, uint32_t parent, uint32_t child, kv_admitted* out, kv_error*);
  /* beams[i] continues what sources[i] was: tokens, lengths, offsets, pages. Repeats and drops are
   * lawful; beams are distinct, and every source is one of them. Handles stay valid. */
  kv_status (*reorder)(kv_engine*, const uint32_t* beams, const uint32_t* sources, uint32_t count,
                       kv_error*);
  /* Keeps the first `length` slots, in the draft cache too where it holds more. Refused when that
   * needs slots which a window has let go. */
  kv_status (*truncate)(kv_engine*, uint32_t request, uint64_t length, kv_error*);
  /* Drops slots [begin, end) and closes the gap: slot s >= end becomes s - (end - begin), in the
   * draft cache as far as it reaches. Bytes are moved, not recomputed, but for K under
   * shift_turns; what follows the gap is no prefix that admit may find. Refused when later queries
   * would see slots that a window has let go, and, where pages have scales (KV_SCALE_PAGE), unless
   * begin and end are multiples of page_slots. */
  kv_status (*shift)(kv_engine*, uint32_t request, uint64_t begin, uint64_t end, kv_error*);
  kv_status (*cancel)(kv_engine*, uint32_t request, kv_error*); /* in any state, at any time */
  kv_status (*finish)(kv_engine*, uint32_t request, kv_error*); /* active requests only */
  kv_status (*preempt)(kv_engine*, uint32_t request, uint32_t mode, kv_error*);
  /* The draft cache is empty then. After a swap: out->length is the length before. After a
   * recompute: the slots that the prefix cache still had; the caller appends the rest again. */
  kv_status (*resume)(kv_engine*, uint32_t request, kv_admitted* out, kv_error*);
  kv_status (*evict)(kv_engine*, uint32_t pages, uint32_t* evicted, kv_error*);
  kv_status (*defrag)(kv_engine*, kv_error*);      /* refused while steps are in flight */
  /* bytes NULL: *byte_count is set to what is needed. Else it is the room, and what was written. */
  kv_status (*save)(kv_engine*, uint32_t request, void* bytes, uint64_t* byte_count, kv_error*);
  /* A new request (admission.tokens and histories NULL) from saved bytes, which are hostile; its
   * draft cache is empty. */
  kv_status (*restore)(kv_engine*, const kv_admission*, const void* bytes, uint64_t byte_count,
                       kv_admitted* out, kv_error*);
  /* The n-th page (of the target pool) or host page taken from now on, 1-based, is not to be had;
   * 0: take that back. */
  kv_status (*fail_allocation)(kv_engine*, uint64_t nth, kv_error*);

  kv_status (*snapshot)(kv_engine*, uint32_t cache, kv_snapshot* out, kv_error*); /* may be NULL */
  /* Of an active request; KV_REFUSED for slots that are not stored or have expired. May be NULL. */
  kv_status (*read_slot)(kv_engine*, uint32_t cache, uint32_t request, uint64_t slot,
                         uint32_t layer, const kv_slot_bytes* out, kv_error*);
  /* By place: layer of the model, which must be one of the page's group. May be NULL. */
  kv_status (*read_page)(kv_engine*, uint32_t cache, uint32_t page, uint32_t page_slot,
                         uint32_t layer, const kv_slot_bytes* out, kv_error*);

  /* The same of `slots` consecutive ones at once: key [slots, kv_heads, head_dim_k], the others
   * alike.
   * NULL, or not there (struct_bytes): kverify reads slot by slot. */
  kv_status (*read_slots)(kv_engine*, uint32_t cache, uint32_t request, uint64_t first_slot,
                          uint32_t slots, uint32_t layer, const kv_slot_bytes* out, kv_error*);
  kv_status (*read_page_slots)(kv_engine*, uint32_t cache, uint32_t page, uint32_t first_slot,
                               uint32_t slots, uint32_t layer, const kv_slot_bytes* out, kv_error*);

  /* 1: shift turns the K that it moves back by the length of the gap, from the bytes that are
   * stored, so that K stands at the position of its new slot; not within a tree: its branches have
   * the positions that they will keep. 0: K keeps the position at which it was appended. */
  uint32_t shift_turns;
};

#ifdef __cplusplus
}
#endif
#endif /* KVERIFY_ENGINE_H_ */
