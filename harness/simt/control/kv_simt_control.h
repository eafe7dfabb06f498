/* kv_simt_control.h: how a harness steers the CPU device.
 *
 * Purpose: beside the cuda* functions the drop-in libcudart exports one versioned C table. A
 * program that knows about it finds it with dlsym(handle, "kv_simt_control"); a program that does
 * not runs as on any device.
 *
 * Contract: plain C, no ownership crosses. Every struct starts with its own size in bytes, set by
 * the caller, so that fields can be added at the end. Functions return 0 on success and -1 on a bad
 * argument, with a sentence in last_error().
 *
 * Example:
 *   const kv_simt_control_v1* c = ((kv_simt_control_fn)dlsym(h, "kv_simt_control"))(1);
 *   kv_simt_config config = {sizeof config}; c->get_config(&config);
 *   config.schedule_seed = 7; c->configure(&config);
 */
#ifndef KV_SIMT_CONTROL_H_
#define KV_SIMT_CONTROL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KV_SIMT_CONTROL_VERSION = 1 };

/* Checks, as a bit set in kv_simt_config.checks. */
enum {
  KV_SIMT_CHECK_MEMORY =
      1 << 0, /* bounds, freed, misaligned, access rights. Bounds are always enforced. */
  KV_SIMT_CHECK_UNDEFINED = 1 << 1,  /* undefined data reaching a branch, an address or an output */
  KV_SIMT_CHECK_BLOCK_RACE = 1 << 2, /* races on shared memory, within a block */
  KV_SIMT_CHECK_GRID_RACE = 1 << 6,  /* races on global memory, between blocks */
  KV_SIMT_CHECK_RACE = KV_SIMT_CHECK_BLOCK_RACE | KV_SIMT_CHECK_GRID_RACE,
  KV_SIMT_CHECK_BARRIER = 1 << 3, /* divergent or incomplete barriers, absent lanes in *.sync */
  KV_SIMT_CHECK_ASYNC = 1 << 4,   /* cp.async data used before its wait */
  KV_SIMT_CHECK_LEAK = 1 << 5,    /* allocations alive at the end */
  KV_SIMT_CHECK_ALL = 0x7f
};

/* Profiles of approximate and unspecified arithmetic. Each result is a pure function of
 * (profile, rounding_seed, operand bits). */
enum {
  KV_SIMT_ROUNDING_NEAREST = 0, /* approx instructions correctly rounded; mma: exact products summed
                                   in double in a fixed order, rounded once */
  KV_SIMT_ROUNDING_RANDOM = 1,  /* anywhere inside the documented bound, by seed and operands */
  KV_SIMT_ROUNDING_UP = 2,      /* at the upper edge of the documented bound */
  KV_SIMT_ROUNDING_DOWN = 3,    /* at the lower edge */
  KV_SIMT_ROUNDING_MMA_AMPERE = 4, /* step-faithful mma (K=8, F=24, t=23), approx nearest */
  KV_SIMT_ROUNDING_MMA_HOPPER = 5  /* step-faithful mma (K=16, F=25, t=23), approx nearest */
};

/* Counters that are collected only on request. */
enum {
  KV_SIMT_COLLECT_MEMORY = 1 << 0,     /* requests, sectors, bank conflicts; else they stay 0 */
  KV_SIMT_COLLECT_EXECUTIONS = 1 << 1, /* of every PTX instruction, see executions */
  KV_SIMT_COLLECT_VALUES = 1 << 2,     /* values_digest */
  KV_SIMT_COLLECT_LAUNCHES = 1 << 3,   /* each launch apart, for write_profile */
  KV_SIMT_COLLECT_PROFILE =
      KV_SIMT_COLLECT_MEMORY | KV_SIMT_COLLECT_EXECUTIONS | KV_SIMT_COLLECT_LAUNCHES
};

typedef struct kv_simt_config {
  uint32_t struct_bytes;
  uint32_t checks; /* KV_SIMT_CHECK_* */
  uint64_t
      schedule_seed; /* 0: blocks and warps in ascending order, unordered streams newest first */
  uint32_t rounding; /* KV_SIMT_ROUNDING_* */
  uint32_t model_sm; /* simulated architecture: 80, 89 or 90 */
  uint64_t rounding_seed;
  uint64_t instruction_budget; /* warp instructions for each launch; 0: the default, 2e9 */
  uint64_t fail_allocation;    /* the n-th allocation from now fails (1-based); 0: none */
  uint64_t memory_bytes; /* device memory that may be backed by real pages; 0: default 8 GiB */
  uint32_t findings_max; /* findings of one kind kept; more are only counted. 0: default 64 */
  uint32_t collect;      /* KV_SIMT_COLLECT_*: counters that cost time; 0: none */
} kv_simt_config;

enum {
  KV_SIMT_KIND_OUT_OF_BOUNDS = 1,
  KV_SIMT_KIND_USE_AFTER_FREE = 2,
  KV_SIMT_KIND_MISALIGNED = 3,
  KV_SIMT_KIND_ACCESS_RIGHTS =
      4, /* written though read-only, or touched though declared off limits */
  KV_SIMT_KIND_UNDEFINED = 5,
  KV_SIMT_KIND_RACE = 6,
  KV_SIMT_KIND_BARRIER = 7,
  KV_SIMT_KIND_ASYNC = 8,
  KV_SIMT_KIND_HANG = 9, /* instruction budget spent (all warps at barriers: BARRIER) */
  KV_SIMT_KIND_TRAP = 10,
  KV_SIMT_KIND_UNSUPPORTED = 11, /* an instruction form that the device does not know */
  KV_SIMT_KIND_LEAK = 12,
  KV_SIMT_KIND_API = 13, /* misuse of the runtime: double free, unknown handle, bad copy */
  KV_SIMT_KIND_RACE_SAME_VALUE = 14 /* both sides wrote the same value; reported apart */
};

/* One finding. Strings are zero-terminated and cut to fit. */
typedef struct kv_simt_finding {
  uint32_t struct_bytes;
  uint32_t kind;         /* KV_SIMT_KIND_* */
  uint64_t launch;       /* 1-based number of the launch since reset; 0: host side */
  char kernel[256];      /* demangled where possible */
  char instruction[96];  /* opcode as written in the PTX */
  uint32_t ptx_line;     /* 1-based, 0: none */
  char source_file[256]; /* "" without -lineinfo */
  uint32_t source_line;
  char inlined_at_file[256]; /* "" when not inlined */
  uint32_t inlined_at_line;
  uint32_t block[3], thread[3];
  uint64_t address; /* device address, or byte offset for shared memory */
  uint32_t access_bytes;
  uint32_t space;           /* 0 generic/none, 1 global, 2 shared, 3 local, 4 param, 5 const */
  uint64_t allocation_base; /* nearest allocation, 0: none */
  uint64_t allocation_bytes;
  uint64_t allocation_number; /* 1-based order of allocation since reset */
  char message[2048];         /* one sentence: what, where, expected, got; of a hang every warp */
  uint64_t repeats;           /* further ones of the same kind at the same line, or instruction */
} kv_simt_finding;

typedef struct kv_simt_counters {
  uint32_t struct_bytes;
  uint32_t reserved;
  uint64_t launches, blocks, warps;
  uint64_t warp_instructions, thread_instructions;
  uint64_t global_load_requests, global_store_requests;
  uint64_t global_load_sectors, global_store_sectors; /* 32-byte sectors */
  uint64_t shared_requests,
      shared_bank_conflicts; /* extra wavefronts beyond one for each request */
  uint64_t mma, barriers, divergent_branches;
  uint64_t shared_bytes_peak; /* for one block */
  uint64_t global_bytes_read_distinct,
      global_bytes_written_distinct; /* compulsory minimum, 0 when not collected */
  uint64_t mutated_executions;       /* of the instruction that a mutation changed, by a warp */
  uint64_t values_digest; /* of every value that an instruction produced or stored, of every branch
                             taken; not of the order in which warps ran. 0 when not collected */
} kv_simt_counters;

/* One small change of one PTX instruction, executed in its place: mutation testing without a
 * compiler. (module, function, instruction, op, variant) names it; the rest says what it is. */
enum {
  KV_SIMT_MUTATE_COMPARE = 1, /* a comparison: the boundary moves, or the opposite; min and max */
  KV_SIMT_MUTATE_CONSTANT,    /* an integer constant by one, an address offset by one access */
  KV_SIMT_MUTATE_SWAP,        /* two operands or elements exchanged */
  KV_SIMT_MUTATE_BARRIER,     /* a barrier dropped */
  KV_SIMT_MUTATE_FENCE,       /* a fence dropped */
  KV_SIMT_MUTATE_WAIT,        /* a wait or commit of asynchronous copies dropped or weakened */
  KV_SIMT_MUTATE_ADD_SUB,     /* add and sub exchanged */
  KV_SIMT_MUTATE_SHIFT,       /* a shift by one bit more or less */
  KV_SIMT_MUTATE_NEGATE,      /* the guard negated */
  KV_SIMT_MUTATE_GUARD,       /* the guard removed, or the branch */
  KV_SIMT_MUTATE_LANE,        /* a shuffle from another lane */
  KV_SIMT_MUTATE_NARROW       /* a 64-bit product or shift cut to 32 bits */
};

typedef struct kv_simt_mutation {
  uint32_t struct_bytes;
  uint32_t op;                    /* KV_SIMT_MUTATE_* */
  uint64_t module;                /* hash of the PTX text */
  uint32_t function, instruction; /* indices in the module and in the function */
  uint32_t variant;
  uint32_t ptx_line;     /* what follows is for people, and ignored by mutate */
  char kernel[256];      /* the function, demangled where possible, cut to fit */
  char source_file[256]; /* "" without -lineinfo */
  uint32_t source_line;
  uint32_t inlined_at_line;
  char inlined_at_file[256]; /* "" when not inlined */
  char op_name[16];
  char before[256], after[256]; /* as PTX */
  uint64_t executions;          /* of the instruction by a warp, with KV_SIMT_COLLECT_EXECUTIONS */
} kv_simt_mutation;

/* Rights for set_access. */
enum { KV_SIMT_ACCESS_NONE = 0, KV_SIMT_ACCESS_READ = 1, KV_SIMT_ACCESS_READ_WRITE = 3 };

typedef struct kv_simt_control_v1 {
  uint32_t version; /* 1 */
  uint32_t struct_bytes;
  const char* (*last_error)(void);
  int (*get_config)(kv_simt_config* out);
  int (*configure)(const kv_simt_config* config);
  /* Frees every allocation, forgets findings, counters and errors, and restarts addresses, so that
   * the next allocation has the address of the first one ever made. Modules stay loaded. */
  int (*reset)(void);
  /* Completes all launched work. */
  int (*synchronize)(void);
  uint64_t (*finding_count)(void); /* all, also those not kept */
  uint64_t (*finding_kept)(void);
  int (*finding)(uint64_t index, kv_simt_finding* out);
  int (*clear_findings)(void);
  int (*counters)(kv_simt_counters* out); /* since reset or clear_counters */
  int (*clear_counters)(void);
  /* Rights of kernels (not of cudaMemcpy) on [address, address+bytes), inside one allocation. */
  int (*set_access)(uint64_t address, uint64_t bytes, uint32_t access);
  /* Completes launched work, and marks bytes as undefined again (as after cudaMalloc), or as
   * defined. */
  int (*set_undefined)(uint64_t address, uint64_t bytes);
  int (*set_defined)(uint64_t address, uint64_t bytes);
  /* Adds a KV_SIMT_KIND_LEAK finding for each device allocation that is alive now. */
  int (*check_leaks)(void);
  /* The mutations of all modules loaded so far (a module is loaded when a kernel or variable of it
   * is first used), in order of loading, function, instruction, op, variant. */
  uint64_t (*mutation_count)(void);
  int (*mutation)(uint64_t index, kv_simt_mutation* out);
  /* Completes launched work and puts this mutation in force, alone; NULL: none. It outlives reset,
   * and may name a module that is loaded later. counters.mutated_executions says whether it was
   * reached; values_digest, compared with that of an unmutated run, whether anything differed. */
  int (*mutate)(const kv_simt_mutation* mutation);
  /* Forgets what KV_SIMT_COLLECT_EXECUTIONS counted. */
  int (*clear_executions)(void);
  /* Edge coverage: each way out of each conditional branch of a kernel, and its entry, adds to one
   * of these counters (which one depends on the kernel's text alone), and stops at 255. The caller
   * owns them, and clears them; count 0 ends it. */
  int (*set_edge_counters)(uint8_t* counters, uint64_t count);
  /* Writes the counters of each launch since reset, and their sum, as JSON; and which source lines
   * of kernels ran, as an lcov tracefile. Of what was collected with KV_SIMT_COLLECT_PROFILE. */
  int (*write_profile)(const char* path);
  int (*write_lcov)(const char* path);
  /* Completes launched work. The first run of undefined bytes in [address, address+bytes), which
   * must lie inside one allocation: its offset from `address`, and its length; a length of 0 means
   * that every byte is defined. */
  int (*first_undefined)(uint64_t address, uint64_t bytes, uint64_t* offset, uint64_t* length);
  /* Adds a KV_SIMT_KIND_UNDEFINED finding for the first of these runs, if there is one, the check
   * is on and no finding tells of undefined data or of a race yet. The message calls the bytes
   * `what`, and says where they came from. */
  int (*report_undefined)(uint64_t address, uint64_t bytes, const char* what);
} kv_simt_control_v1;

/* Returns the table for `version`, or NULL when this library does not have it. */
typedef const kv_simt_control_v1* (*kv_simt_control_fn)(uint32_t version);
const kv_simt_control_v1* kv_simt_control(uint32_t version);

#ifdef __cplusplus
}
#endif
#endif /* KV_SIMT_CONTROL_H_ */
