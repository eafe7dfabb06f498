#include "harness/mutant/machine.h"

#include <time.h>

#include <algorithm>
#include <numeric>

#include "harness/plugin/device_config.h"

namespace kv {
namespace {

double processor_seconds() {
  timespec t = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

/// Warp instructions of one launch; those of the suite need a hundredth.
constexpr uint64_t kLaunchBudget = 4'000'000;

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

/// The executed mutations of the wanted kernels.
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

std::vector<Listed> choose(std::vector<Listed> all, uint64_t most) {
  if (most == 0 || all.size() <= most) return all;
  std::vector<Listed> chosen;
  for (uint64_t i = 0; i < most; ++i) chosen.push_back(all[i * all.size() / most]);
  return chosen;
}

/// Which entries of the suite execute the instruction of each chosen mutation.
std::vector<std::vector<bool>> entries_that_reach(const Bench& bench, const Suite& suite,
                                                  const std::vector<Listed>& chosen) {
  std::vector<std::vector<bool>> reach(chosen.size(), std::vector<bool>(suite.size()));
  for (size_t entry = 0; entry < suite.size(); ++entry) {
    bench.runtime.control->clear_executions();
    suite.run(entry);
    for (size_t i = 0; i < chosen.size(); ++i) {
      kv_simt_mutation now = {.struct_bytes = sizeof now};
      if (bench.runtime.control->mutation(chosen[i].index, &now) != 0) continue;
      reach[i][entry] = now.executions > 0;
    }
  }
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
  std::vector<size_t> of(const std::vector<bool>& reach) const {
    std::vector<size_t> wanted;
    for (const size_t entry : entries_)
      if (reach[entry]) wanted.push_back(entry);
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

void try_mutation(const Suite& suite, double seconds_max, const std::vector<bool>& reach,
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
  KV_ASSIGN_OR_RETURN(const Suite suite, Suite::create(bench, options.suite));
  ShardFacts facts;
  const std::vector<Listed> chosen =
      choose(list_mutations(bench, options, facts), options.mutations_max);
  facts.chosen = chosen.size();
  const auto reach = entries_that_reach(bench, suite, chosen);
  KV_RETURN_IF_ERROR(configure(bench, KV_SIMT_COLLECT_VALUES));
  Order order(suite);
  for (uint64_t i = options.shard; i < chosen.size(); i += options.shards) {
    if (options.done.contains(chosen[i].index)) continue;
    MachineResult result = describe(chosen[i].index, chosen[i].mutation);
    begin(result);
    if (control->mutate(&chosen[i].mutation) != 0)
      return environment_error("the CPU device refused a mutation that it had listed");
    try_mutation(suite, options.seconds_max, reach[i], order, result);
    control->mutate(nullptr);
    end(result);
  }
  return facts;
}

}  // namespace kv
