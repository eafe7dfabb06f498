// Prints how often each rule finds each fault, and how often it accuses a correct kernel.
//
//   oracle_detect [--format f16|bf16] [--trials N] [KEYS...]        default: f16, 20, 128 1024
//
// Rules: 1e-2 and 1e-3 (rtol = atol), FA (twice the error of a low-precision baseline, over the
// whole output), B0 (black box), LSE, both together, and B2 (declared tiles and rounding of P) with
// LSE. `seen`: share of faults that changed any bit at all; rates are over all trials.
// Exit code 1 when a certified rule accuses a correct kernel.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "reference/decide.h"
#include "reference/elementary.h"
#include "reference/soundness/drawn_head.h"
#include "reference/soundness/faults.h"

namespace kv::reference {
namespace {

enum Rule { kSeen, kLoose, kTight, kTwice, kBlackBox, kLse, kBoth, kProfile, kRules };

const char* const kDesigns[] = {"normal",      "large scores",      "needle",
                                "sparse code", "uniform, zero sum", "ascending"};

TestHead make_head(size_t design, DType type, uint32_t keys, uint64_t seed) {
  TestHead head({.slots = keys,
                 .dim_k = 64,
                 .dim_v = 64,
                 .dtype = type,
                 .output_dtype = type,
                 .scale = 0.125f,
                 .seed = seed,
                 .query_size = design == 1 ? 8.0 : 1.0});
  Draw draw(seed ^ 0x64657369676e);
  const auto aim = [&head](uint32_t slot, double score) {
    double square = 0;
    for (double q : head.query) square += q * q;
    for (uint32_t c = 0; c < 64; ++c) {
      head.set(head.key[slot * 64 + c], score / (0.125 * square) * head.query[c]);
    }
  };
  if (design == 2) aim(static_cast<uint32_t>(draw.below(keys)), 18);
  for (uint32_t i = 0; i < keys; ++i) {
    if (design == 5) aim(i, 8.0 * i / keys + 0.1 * draw.normal());
    for (uint32_t j = 0; j < 64; ++j) {
      double& v = head.value[i * 64 + j];
      if (design == 3)
        head.set(v, i % 64 == j ? (draw.one_in(2) ? 1 : -1) * (1 + draw.uniform() / 2) : 0);
      // S(i) - S(i-1): the sum over the row telescopes.
      if (design == 4) {
        const auto s = [&](uint64_t at) {
          return static_cast<double>(Philox{.key = seed}.word(9 + j, at) % 7) - 3;
        };
        v = s(i + 1) - s(i);
      }
    }
  }
  if (design == 4) std::fill(head.query.begin(), head.query.end(), 0.0);
  return head;
}

// An unfused kernel in the input type throughout, as test suites take for comparison.
std::vector<double> low_precision_baseline(const RowInputs& in, DType type) {
  const auto round = [type](double x) { return decode(type, encode(type, x)); };
  std::vector<double> scores, output(in.shape.dim_v, 0);
  double max = -1e300, sum = 0;
  for (size_t i = 0; i < in.count(); ++i) {
    double s = 0;
    for (size_t c = 0; c < in.shape.dim_k; ++c) {
      s += in.query[c] * round(in.keys[i * in.shape.dim_k + c] * in.shape.scale);
    }
    scores.push_back(round(s));
    max = std::max(max, scores.back());
  }
  for (double& s : scores) sum += s = exp_nonpositive(s - max);
  for (size_t i = 0; i < in.count(); ++i) {
    for (size_t j = 0; j < output.size(); ++j) {
      output[j] += round(scores[i] / sum) * in.values[i * in.shape.dim_v + j];
    }
  }
  for (double& o : output) o = round(o);
  return output;
}

struct Subject {
  const RowInputs& inputs;
  DType type;
  const Profile& profile;
};

std::vector<bool> judge(const Subject& s, const KernelResult& got) {
  std::vector<bool> accused(kRules, false);
  RowDecider decider(s.inputs, s.profile, s.type);
  const std::vector<double> baseline = low_precision_baseline(s.inputs, s.type);
  double error = 0, baseline_error = 0, rounding_error = 0;
  const auto round = [&](double x) { return decode(s.type, encode(s.type, x)); };
  for (size_t j = 0; j < got.output.size(); ++j) {
    const Question q{.column = static_cast<int64_t>(j), .got = got.output[j]};
    const Answer a = decider.ask(q);
    const double difference = std::fabs(got.output[j] - a.want), want = std::fabs(a.want);
    if (difference > 1e-2 + 1e-2 * want) accused[kLoose] = true;
    if (difference > 1e-3 + 1e-3 * want) accused[kTight] = true;
    if (a.decision == Decision::kViolates) accused[kBlackBox] = true;
    if (decider.ask(q, Basis::kProbability).decision == Decision::kViolates)
      accused[kProfile] = true;
    const double rounded = round(a.want);
    error = std::max(error, std::fabs(got.output[j] - rounded));
    baseline_error = std::max(baseline_error, std::fabs(baseline[j] - rounded));
    rounding_error =
        std::max(rounding_error, std::fabs(round(round(rounded + 0.3) - 0.3) - rounded));
  }
  accused[kTwice] = error > 2 * baseline_error + 2 * rounding_error;
  accused[kLse] = decider.ask({.got = got.lse}).decision == Decision::kViolates;
  accused[kBoth] = accused[kBlackBox] || accused[kLse];
  accused[kProfile] = accused[kProfile] || accused[kLse];
  return accused;
}

struct Options {
  DType type = DType::kF16;
  uint64_t trials = 20;
  std::vector<uint32_t> keys;
};

// Rates of every rule for one cell of the table.
std::vector<double> cell(const Options& o, size_t design, uint32_t keys, Fault fault) {
  std::vector<double> rates(kRules, 0);
  KernelConfig kernel;
  kernel.probability_dtype = o.type;
  kernel.exp2_error = Exp2Error::kRandom;
  const Profile profile = resolve_profile({.shape = shape_of(o.type),
                                           .declared = declaration_of(kernel),
                                           .arithmetic = kernel.architecture});
  for (uint64_t t = 0; t < o.trials; ++t) {
    const uint64_t seed = t * 1'000 + design * 17 + keys;
    TestHead head = make_head(design, o.type, keys, seed);
    const RowInputs inputs = row_inputs(head.block(), 0);
    Draw where(seed + 1), noise(seed + 2), same_noise(seed + 2);
    const KernelResult got = run_kernel(plant(fault, inputs, where), kernel, noise);
    const KernelResult right = run_kernel(inputs, kernel, same_noise);
    std::vector<bool> accused = judge({inputs, o.type, profile}, got);
    accused[kSeen] = got.output != right.output || got.lse != right.lse;
    for (int r = 0; r < kRules; ++r) rates[r] += accused[r] / static_cast<double>(o.trials);
  }
  return rates;
}

int run(const Options& o) {
  bool unsound = false;
  std::printf("%s, one row, 64 dimensions, tiles of 64, Hopper mma, ex2 within 2 ulp, %lu trials\n",
              std::string(dtype_name(o.type)).c_str(), static_cast<unsigned long>(o.trials));
  std::printf("%-18s %6s  %-24s %5s %5s %5s %5s %5s %5s %5s %5s\n", "design", "keys", "fault",
              "seen", "1e-2", "1e-3", "FA", "B0", "LSE", "both", "B2");
  for (size_t design = 0; design < std::size(kDesigns); ++design) {
    for (uint32_t keys : o.keys) {
      for (Fault fault : kFaults) {
        const std::vector<double> rates = cell(o, design, keys, fault);
        std::printf("%-18s %6u  %-24s", kDesigns[design], keys,
                    std::string(fault_name(fault)).c_str());
        for (double rate : rates) std::printf(" %5.2f", rate);
        std::printf("\n");
        unsound = unsound || (fault == Fault::kNone && (rates[kBoth] > 0 || rates[kProfile] > 0));
      }
    }
  }
  return unsound ? 1 : 0;
}

bool parse(int argc, char** argv, Options& o) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--format" && i + 1 < argc) {
      const std::string name = argv[++i];
      if (name != "f16" && name != "bf16") return false;
      o.type = name == "f16" ? DType::kF16 : DType::kBf16;
      continue;
    }
    const bool trials = word == "--trials" && i + 1 < argc;
    char* end = nullptr;
    const char* number = trials ? argv[++i] : argv[i];
    const unsigned long value = std::strtoul(number, &end, 10);
    if (*number < '0' || *number > '9' || *end != 0 || value < 1 || value > 65536) return false;
    if (trials) {
      o.trials = value;
    } else {
      o.keys.push_back(static_cast<uint32_t>(value));
    }
  }
  if (o.keys.empty()) o.keys = {128, 1024};
  for (uint32_t keys : o.keys) {
    if (keys < 2) return false;
  }
  return true;
}

}  // namespace
}  // namespace kv::reference

int main(int argc, char** argv) {
  kv::reference::Options options;
  if (kv::reference::parse(argc, argv, options)) return kv::reference::run(options);
  std::fprintf(stderr,
               "usage: oracle_detect [--format f16|bf16] [--trials N] [KEYS...]\n"
               "expected numbers from 1 to 65536, and at least 2 keys\n");
  return 2;
}
