// Prints how often each rule finds each fault, and how often it accuses a correct kernel.
//
//   oracle_detect [--format f16|bf16|e4m3] [--trials N] [--rows N] [--dims N] [--cells]
//                 [--at-least OVERALL ENGINEERED] [KEYS...]
//   default: f16, 20 trials, 4 rows (subset select: 16 from 1024 keys on) of 128 dimensions, 128
//   and 1024 keys
//
// Rules: 1e-2 and 1e-3 (rtol = atol), 2x (twice the error of a low-precision baseline), B0 and LSE
// (black box), both, and B2 (declared tiles and rounding of P) with both. Rates are over the faults
// that changed any bit, with Wilson's 95 % interval. --cells prints each design and fault.
// Exit code 1 when a certified rule accuses a correct kernel, or finds less than asked.
#include <malloc.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "reference/soundness/detect_design.h"
#include "reference/soundness/detect_rules.h"
#include "reference/soundness/faults.h"

namespace kv::reference {
namespace {

struct Options {
  DType type = DType::kF16;
  uint64_t trials = 20, rows = 0, dims = 128;  // 0 rows: rows_of()
  bool cells = false;
  double overall_min = 0, engineered_min = 0;
  std::vector<uint32_t> keys;
};

struct Count {
  uint64_t trials = 0, found[kRules] = {};
  void add(const Accused& accused) {
    ++trials;
    for (int r = 0; r < kRules; ++r) found[r] += accused[r];
  }
  void add(const Count& other) {
    trials += other.trials;
    for (int r = 0; r < kRules; ++r) found[r] += other.found[r];
  }
  double rate(int rule) const {
    return trials == 0 ? 1 : static_cast<double>(found[rule]) / static_cast<double>(trials);
  }
};

constexpr size_t kFaultCount = std::size(kFaults);
struct Table {
  Count cell[kDetectDesigns][kFaultCount];
};

bool is_fault(size_t f) {
  return kFaults[f] != Fault::kNone && kFaults[f] != Fault::kSwapKeysAndValues;
}

bool same(const std::vector<KernelResult>& a, const std::vector<KernelResult>& b) {
  for (size_t r = 0; r < a.size(); ++r) {
    if (a[r].output != b[r].output || a[r].lse != b[r].lse) return false;
  }
  return true;
}

// As docs/numerics.md §5.1 says. A subset's weight is that of keys / rows keys.
uint64_t rows_of(const Options& o, DetectDesign design, uint32_t keys) {
  if (o.rows > 0) return o.rows;
  return design == DetectDesign::kSubsetSelect && keys >= 1024 ? 16 : 4;
}

// Every fault in one head: what is right is computed once.
void try_head(const Options& o, DetectDesign design, uint32_t keys, uint64_t seed, Table& table) {
  KernelConfig kernel;
  kernel.probability_dtype = o.type;
  kernel.exp2_error = Exp2Error::kRandom;
  if (o.type == DType::kE4m3) {
    kernel.scores = kernel.values = kBlackwell8;
    kernel.architecture = "blackwell";
  }
  const Profile profile = resolve_profile({.shape = shape_of(o.type),
                                           .declared = declaration_of(kernel),
                                           .arithmetic = kernel.architecture});
  const uint64_t row_count = rows_of(o, design, keys);
  const DetectSize size = {
      .rows = static_cast<uint32_t>(row_count), .keys = keys, .dim = static_cast<uint32_t>(o.dims)};
  TestHead head = detect_head(design, o.type, size, seed);
  std::vector<RowRules> rows;
  const HeadBlock& block = head.block();
  for (size_t r = 0; r < row_count; ++r) {
    rows.emplace_back(row_inputs(block, r), profile, block.shape.output_dtype);
  }
  const auto run = [&](Fault fault) {
    std::vector<KernelResult> results;
    Draw where(seed + 1);
    RowInputs planted = plant(fault, rows[0].inputs(), where);  // the same place in every row
    for (size_t r = 0; r < row_count; ++r) {
      Draw noise(seed + 2 + r);
      planted.query = rows[r].inputs().query;  // rows differ in nothing else
      results.push_back(run_kernel(planted, kernel, noise));
    }
    return results;
  };
  const std::vector<KernelResult> right = run(Fault::kNone);
  for (size_t f = 0; f < kFaultCount; ++f) {
    const std::vector<KernelResult> got = kFaults[f] == Fault::kNone ? right : run(kFaults[f]);
    if (is_fault(f) && same(got, right)) continue;  // not observable
    table.cell[static_cast<size_t>(design)][f].add(judge_rows(rows, got));
  }
}

void print(const std::string& name, const Count& c) {
  std::printf("%-44s %7lu", name.c_str(), static_cast<unsigned long>(c.trials));
  for (int r = 0; r < kRules; ++r) {
    // Wilson: the square root is IEEE's, so the figures are the same everywhere.
    const double n = static_cast<double>(c.trials), z2 = 1.96 * 1.96, p = c.rate(r);
    const double half =
        c.trials == 0 ? 0 : 1.96 / (1 + z2 / n) * std::sqrt(p * (1 - p) / n + z2 / (4 * n * n));
    std::printf("  %.3f+-%.3f", p, half);
  }
  std::printf("\n");
}

void print_cells(const Table& table) {
  for (size_t d = 0; d < kDetectDesigns; ++d) {
    for (size_t f = 0; f < kFaultCount; ++f) {
      print(std::string(design_name(static_cast<DetectDesign>(d))) + ": " +
                std::string(fault_name(kFaults[f])),
            table.cell[d][f]);
    }
  }
}

/// False when a certified rule accused a correct kernel or found less than asked.
bool summarise(const Options& o, const Table& table) {
  Count correct, reordered, by_fault[kFaultCount], random, engineered, overall;
  for (size_t d = 0; d < kDetectDesigns; ++d) {
    for (size_t f = 0; f < kFaultCount; ++f) {
      const Count& cell = table.cell[d][f];
      by_fault[f].add(cell);
      if (!is_fault(f)) {
        (kFaults[f] == Fault::kNone ? correct : reordered).add(cell);
        continue;
      }
      overall.add(cell);
      (is_engineered(static_cast<DetectDesign>(d)) ? engineered : random).add(cell);
    }
  }
  for (size_t f = 0; f < kFaultCount; ++f) print(std::string(fault_name(kFaults[f])), by_fault[f]);
  print("CORRECT KERNELS ACCUSED", correct);
  print("FAULTS FOUND, random designs", random);
  print("FAULTS FOUND, engineered designs", engineered);
  print("FAULTS FOUND, all designs", overall);
  // Two keys exchanged with their values are no fault, but another order than the declared one,
  // which B2 rests on.
  if (correct.found[kCertified] > 0 || reordered.found[kBoth] > 0) return false;
  return overall.rate(kCertified) >= o.overall_min &&
         engineered.rate(kCertified) >= o.engineered_min;
}

int run(const Options& o) {
  bool good = true;
  for (uint32_t keys : o.keys) {
    std::printf(
        "%s, %u keys, %s rows, %lu dimensions, tiles of 64, ex2 within 2 ulp, %lu trials "
        "of each design\n%-44s %7s",
        std::string(dtype_name(o.type)).c_str(), keys,
        o.rows > 0 ? std::to_string(o.rows).c_str() : "4 (subset select: 16 from 1024 keys on)",
        static_cast<unsigned long>(o.dims), static_cast<unsigned long>(o.trials), "", "seen");
    for (const char* name : kRuleNames) std::printf("  %12s", name);
    std::printf("\n");
    Table table;
    for (size_t d = 0; d < kDetectDesigns; ++d) {
      for (uint64_t t = 0; t < o.trials; ++t) {
        try_head(o, static_cast<DetectDesign>(d), keys, t * 1'000 + d * 17 + keys, table);
      }
    }
    if (o.cells) print_cells(table);
    good = summarise(o, table) && good;
    std::fflush(stdout);
  }
  return good ? 0 : 1;
}

bool parse_format(const std::string& name, DType& type) {
  for (DType t : {DType::kF16, DType::kBf16, DType::kE4m3}) {
    if (name == dtype_name(t)) type = t;
  }
  return name == dtype_name(type);
}

bool parse_number(const char* word, double low, double high, double& out) {
  if (word == nullptr) return false;
  char* end = nullptr;
  out = std::strtod(word, &end);
  return *word >= '0' && *word <= '9' && *end == 0 && out >= low && out <= high;
}

bool parse(char** arguments, Options& o) {
  for (char** word = arguments; *word; ++word) {
    const std::string name = *word;
    double number = 0;
    if (name == "--cells") {
      o.cells = true;
    } else if (name == "--format") {
      if (*++word == nullptr || !parse_format(*word, o.type)) return false;
    } else if (name == "--at-least") {
      if (!parse_number(*++word, 0, 1, o.overall_min)) return false;
      if (!parse_number(*++word, 0, 1, o.engineered_min)) return false;
    } else if (name == "--trials" || name == "--rows" || name == "--dims") {
      if (!parse_number(*++word, 1, 100'000, number)) return false;
      uint64_t& taken = name == "--rows" ? o.rows : name == "--dims" ? o.dims : o.trials;
      taken = static_cast<uint64_t>(number);
    } else {
      if (!parse_number(*word, 32, 65536, number)) return false;
      o.keys.push_back(static_cast<uint32_t>(number));
    }
  }
  if (o.keys.empty()) o.keys = {128, 1024};
  return o.rows <= 16 && o.dims <= 256 && o.dims % 8 == 0;
}

}  // namespace
}  // namespace kv::reference

int main(int, char** argv) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);  // inputs of megabytes come and go with every row and fault
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  kv::reference::Options options;
  if (kv::reference::parse(argv + 1, options)) return kv::reference::run(options);
  std::fprintf(stderr,
               "usage: oracle_detect [--format f16|bf16|e4m3] [--trials N] [--rows N] [--dims N] "
               "[--cells] [--at-least OVERALL ENGINEERED] [KEYS...]\n"
               "expected 32 to 65536 keys, at most 16 rows, at most 256 dimensions in eights, "
               "rates from 0 to 1\n");
  return 2;
}
