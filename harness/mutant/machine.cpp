#include "harness/mutant/machine.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "harness/plugin/device_config.h"

namespace kv {
namespace {

double processor_seconds() {
  timespec t = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

/// Warp instructions of one launch. The largest of the suite, over codes, needs 4 million and more.
constexpr uint64_t kLaunchBudget = 32'000'000;

Result<void> configure(const Bench& bench, uint32_t collect) {
  const kv_simt_control_v1* control = bench.runtime.control;
  if (control == nullptr) return environment_error("machine mutants need the CPU device");
  return change_device(control, "the CPU device refused its configuration",
                       [&](kv_simt_config& config) {
                         config.collect = collect;
                         config.instruction_budget = kLaunchBudget;
                       });
}

/// Without the folder that the library was built in.
std::string source_of(const kv_simt_mutation& m) {
  const std::string file = m.source_file;
  const size_t root = file.rfind("/impl/");
  const size_t from = root == std::string::npos ? file.rfind('/') : root;
  return file.substr(from == std::string::npos ? 0 : from + 1) + ":" +
         std::to_string(m.source_line);
}

MachineResult describe(uint64_t index, const kv_simt_mutation& m) {
  MachineResult r;
  r.index = index;
  r.kernel = m.kernel;
  r.source = source_of(m);
  r.op = m.op_name;
  r.variant = m.variant;
  r.before = m.before;
  r.after = m.after;
  return r;
}

struct Listed {
  uint64_t index = 0;
  kv_simt_mutation mutation = {};
};

/// The mutations of the wanted kernels that were executed since counts were cleared.
std::vector<Listed> list_mutations(const Bench& bench, const MachineOptions& options,
                                   ShardFacts& facts) {
  std::vector<Listed> listed;
  const uint64_t count = bench.runtime.control->mutation_count();
  for (uint64_t i = 0; i < count; ++i) {
    Listed item{.index = i};
    item.mutation.struct_bytes = sizeof item.mutation;
    if (bench.runtime.control->mutation(i, &item.mutation) != 0) continue;
    if (std::string_view(item.mutation.kernel).find(options.kernel) == std::string_view::npos)
      continue;
    ++facts.mutations;
    if (item.mutation.executions > 0) listed.push_back(item);
  }
  facts.executed = listed.size();
  return listed;
}

std::string name_of(const MachineResult& r) {
  return fmt::format("mutation {} ({}, {}, {}: {} -> {})", r.index, r.kernel, r.source, r.op,
                     r.before, r.after);
}

/// Of the listed ones those that an earlier run names, which has to mean the same by its numbers.
Result<std::vector<Listed>> named(const std::vector<Listed>& all,
                                  const std::vector<MachineResult>& wanted) {
  std::map<uint64_t, const Listed*> by_index;
  for (const Listed& item : all) by_index[item.index] = &item;
  std::vector<Listed> found;
  for (const MachineResult& earlier : wanted) {
    const auto at = by_index.find(earlier.index);
    const std::string want = name_of(earlier);
    const std::string got = at == by_index.end()
                                ? "none that the suite executes"
                                : name_of(describe(earlier.index, at->second->mutation));
    if (got != want)
      return bad_input("--again: expected " + want + ", got " + got +
                       ": it is of another build of the plugin, or of other options");
    found.push_back(*at->second);
  }
  return found;
}

std::vector<Listed> choose(std::vector<Listed> all, uint64_t most) {
  if (most == 0 || all.size() <= most) return all;
  std::vector<Listed> chosen;
  for (uint64_t i = 0; i < most; ++i) chosen.push_back(all[i * all.size() / most]);
  return chosen;
}

/// Which entries of the suite execute the instruction of each chosen mutation.
class Reach {
 public:
  Reach(const Bench& bench, const std::vector<Listed>& chosen)
      : control_(*bench.runtime.control), chosen_(chosen), entries_(chosen.size()) {}

  /// Notes the entry that ran since counts were cleared, unless the mutations that it reaches have
  /// `enough`.
  bool add(size_t entry, uint32_t enough) {
    std::vector<size_t> reached;
    bool is_needed = false;
    for (size_t i = 0; i < chosen_.size(); ++i) {
      kv_simt_mutation now = {.struct_bytes = sizeof now};
      if (control_.mutation(chosen_[i].index, &now) != 0 || now.executions == 0) continue;
      reached.push_back(i);
      is_needed |= entries_[i].size() < enough;
    }
    if (is_needed)
      for (const size_t i : reached) entries_[i].insert(entry);
    return is_needed;
  }
  void clear() const { control_.clear_executions(); }
  bool all_have(uint32_t enough) const {
    return std::all_of(entries_.begin(), entries_.end(),
                       [&](const std::set<size_t>& of) { return of.size() >= enough; });
  }
  const std::set<size_t>& of(size_t chosen) const { return entries_[chosen]; }

 private:
  const kv_simt_control_v1& control_;
  const std::vector<Listed>& chosen_;
  std::vector<std::set<size_t>> entries_;
};

/// Of one mutation, which some case reaches.
Result<void> add_relatives(size_t chosen, uint32_t enough, Suite& suite, Reach& reach) {
  for (uint32_t n = 0; n < kRelativesMax && reach.of(chosen).size() < enough; ++n) {
    const auto parent = std::next(reach.of(chosen).begin(), n % reach.of(chosen).size());
    KV_ASSIGN_OR_RETURN(const bool passed, suite.grow_like(*parent));
    if (passed && !reach.add(suite.size() - 1, enough)) suite.drop_last();
  }
  return {};
}

Result<Reach> reach_all(const Bench& bench, const std::vector<Listed>& chosen, uint32_t enough,
                        Suite& suite) {
  Reach reach(bench, chosen);
  constexpr uint32_t kAny = ~uint32_t{0};
  for (size_t entry = 0; entry < suite.size(); ++entry) {
    reach.clear();
    suite.run(entry);
    reach.add(entry, kAny);
  }
  for (uint32_t grown = 0; grown < kGrownMax && !reach.all_have(enough); ++grown) {
    KV_ASSIGN_OR_RETURN(const bool passed, suite.grow());
    if (!passed) break;
    if (!reach.add(suite.size() - 1, enough)) suite.drop_last();
  }
  for (size_t i = 0; i < chosen.size(); ++i)
    if (!reach.of(i).empty()) KV_RETURN_IF_ERROR(add_relatives(i, enough, suite, reach));
  return reach;
}

/// Those that killed most first; among equals the cheapest.
class Order {
 public:
  explicit Order(const Suite& suite) : kills_(suite.size()), entries_(suite.size()) {
    std::iota(entries_.begin(), entries_.end(), size_t{0});
    std::stable_sort(entries_.begin(), entries_.end(),
                     [&](size_t a, size_t b) { return suite.cost(a) < suite.cost(b); });
  }
  std::vector<size_t> of(const std::set<size_t>& reach) const {
    std::vector<size_t> wanted;
    for (const size_t entry : entries_)
      if (reach.contains(entry)) wanted.push_back(entry);
    return wanted;
  }
  void killed(size_t entry) {
    ++kills_[entry];
    std::stable_sort(entries_.begin(), entries_.end(),
                     [this](size_t a, size_t b) { return kills_[a] > kills_[b]; });
  }

 private:
  std::vector<uint64_t> kills_;
  std::vector<size_t> entries_;
};

void try_mutation(const Suite& suite, double seconds_max, const std::set<size_t>& reach,
                  Order& order, MachineResult& result) {
  const double started = processor_seconds();
  for (const size_t entry : order.of(reach)) {
    result.is_complete = processor_seconds() - started < seconds_max;
    if (!result.is_complete) return;
    const EntryOutcome outcome = suite.run(entry);
    ++result.cases;
    result.reached |= outcome.reached;
    result.infected |= outcome.infected;
    result.propagated |= outcome.propagated;
    result.killer = outcome.killer;
    if (result.killer.empty()) continue;
    order.killed(entry);
    return;
  }
}

}  // namespace

Result<ShardFacts> run_shard(const Bench& bench, const MachineOptions& options,
                             const std::function<void(const MachineResult&)>& begin,
                             const std::function<void(const MachineResult&)>& end) {
  const kv_simt_control_v1* control = bench.runtime.control;
  KV_RETURN_IF_ERROR(configure(bench, KV_SIMT_COLLECT_EXECUTIONS | KV_SIMT_COLLECT_VALUES));
  KV_ASSIGN_OR_RETURN(Suite suite, Suite::create(bench, options.suite));
  // Draws that were refused have executed something, too.
  control->clear_executions();
  for (size_t entry = 0; entry < suite.size(); ++entry) suite.run(entry);
  ShardFacts facts;
  std::vector<Listed> chosen = list_mutations(bench, options, facts);
  if (!options.only.empty()) {
    KV_ASSIGN_OR_RETURN(chosen, named(chosen, options.only));
  }
  chosen = choose(std::move(chosen), options.mutations_max);
  facts.chosen = chosen.size();
  KV_ASSIGN_OR_RETURN(const Reach reach, reach_all(bench, chosen, options.reach_cases, suite));
  KV_RETURN_IF_ERROR(configure(bench, KV_SIMT_COLLECT_VALUES));
  Order order(suite);
  for (uint64_t i = options.shard; i < chosen.size(); i += options.shards) {
    if (options.done.contains(chosen[i].index)) continue;
    MachineResult result = describe(chosen[i].index, chosen[i].mutation);
    begin(result);
    if (control->mutate(&chosen[i].mutation) != 0)
      return environment_error("the CPU device refused a mutation that it had listed");
    try_mutation(suite, options.seconds_max, reach.of(i), order, result);
    control->mutate(nullptr);
    end(result);
  }
  return facts;
}

}  // namespace kv
