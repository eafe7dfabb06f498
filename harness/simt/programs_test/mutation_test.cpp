// Mutations through the control table: each is executed in place of the original, it is known
// whether it was reached and whether anything differed, and the original comes back.
#include "harness/simt/programs_test/mutation.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "harness/simt/programs_test/device_fixture.h"

namespace kv::simt::programs {
namespace {

struct Outcome {
  std::vector<int> out;
  cudaError_t error = cudaSuccess;
  kv_simt_counters counters = {};
  std::vector<uint32_t> kinds;

  bool reached() const { return counters.mutated_executions != 0; }
};

class Mutation : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_EQ(control().mutate(nullptr), 0);
    collect(KV_SIMT_COLLECT_VALUES);
  }
  void TearDown() override {
    ASSERT_EQ(control().mutate(nullptr), 0);
    ASSERT_EQ(control().set_edge_counters(nullptr, 0), 0);
    collect(0);
    ASSERT_EQ(control().reset(), 0);
  }

  static void collect(uint32_t what) {
    kv_simt_config config = current();
    config.collect = what;
    configure(config);
  }

  static Outcome run(RowShape shape = {.rows = 2, .columns = 60, .skipped = 3}) {
    EXPECT_EQ(control().reset(), 0);
    std::vector<int> in(size_t(shape.rows * shape.columns));
    for (size_t k = 0; k < in.size(); ++k) in[k] = int(k * k % 97);
    Outcome outcome;
    int* const device_in = upload(in);
    int* const device_out = upload(std::vector<int>(size_t(shape.rows) * 3));
    launch_row_sums(device_in, device_out, shape);
    outcome.error = cudaDeviceSynchronize();
    if (outcome.error == cudaSuccess) outcome.out = download(device_out, size_t(shape.rows) * 3);
    outcome.counters.struct_bytes = sizeof outcome.counters;
    EXPECT_EQ(control().counters(&outcome.counters), 0);
    outcome.kinds = finding_kinds();
    return outcome;
  }

  static std::vector<kv_simt_mutation> mutations_of(const std::string& kernel) {
    std::vector<kv_simt_mutation> all;
    for (uint64_t k = 0; k < control().mutation_count(); ++k) {
      kv_simt_mutation m = {};
      m.struct_bytes = sizeof m;
      EXPECT_EQ(control().mutation(k, &m), 0) << control().last_error();
      if (std::string(m.kernel).find(kernel) != std::string::npos) all.push_back(m);
    }
    return all;
  }

  /// The only one, or the first one, of an operator whose original contains `before`.
  static kv_simt_mutation find(uint32_t op, const std::string& before, size_t skip = 0) {
    for (const kv_simt_mutation& m : mutations_of("row_sums")) {
      if (m.op == op && std::string(m.before).find(before) != std::string::npos && skip-- == 0) {
        return m;
      }
    }
    ADD_FAILURE() << "no mutation " << op << " of " << before;
    return {};
  }
};

TEST_F(Mutation, EveryOperatorIsOfferedAndEveryMutantRuns) {
  const Outcome original = run();
  ASSERT_EQ(original.kinds, Kinds());
  std::map<uint32_t, int> offered;
  int changed = 0;
  for (const kv_simt_mutation& m : mutations_of("row_sums")) {
    ++offered[m.op];
    ASSERT_EQ(control().mutate(&m), 0) << control().last_error();
    const Outcome mutant = run();
    EXPECT_EQ(std::count(mutant.kinds.begin(), mutant.kinds.end(), KV_SIMT_KIND_UNSUPPORTED), 0)
        << m.before << " -> " << m.after;
    const bool differs = mutant.out != original.out || mutant.kinds != original.kinds;
    changed += differs;
    // A result that differs was reached, and some value differed on the way to it.
    if (mutant.out != original.out && mutant.error == cudaSuccess) {
      EXPECT_TRUE(mutant.reached() || m.op == KV_SIMT_MUTATE_GUARD)
          << m.before << " -> " << m.after;
      EXPECT_NE(mutant.counters.values_digest, original.counters.values_digest)
          << m.before << " -> " << m.after;
    }
  }
  for (uint32_t op = 1; op <= KV_SIMT_MUTATE_NARROW; ++op) EXPECT_GT(offered[op], 0) << op;
  EXPECT_GT(changed, 50);
  ASSERT_EQ(control().mutate(nullptr), 0);
  const Outcome again = run();
  EXPECT_EQ(again.out, original.out);
  EXPECT_EQ(again.counters.values_digest, original.counters.values_digest);
  EXPECT_EQ(again.counters.mutated_executions, 0u);
}

TEST_F(Mutation, TheListNamesItsSource) {
  run();
  const kv_simt_mutation m = find(KV_SIMT_MUTATE_BARRIER, "bar");
  EXPECT_NE(std::string(m.source_file).find("mutation.cu"), std::string::npos);
  EXPECT_GT(m.source_line, 0u);
  EXPECT_STREQ(m.op_name, "barrier");
  EXPECT_STREQ(m.after, "(nothing)");
}

TEST_F(Mutation, ABarrierThatMattersLeavesATrace) {
  const Outcome original = run();
  const kv_simt_mutation m = find(KV_SIMT_MUTATE_BARRIER, "bar.sync");
  ASSERT_EQ(control().mutate(&m), 0);
  const Outcome mutant = run();
  EXPECT_TRUE(mutant.reached());
  EXPECT_NE(mutant.kinds, Kinds());
  EXPECT_NE(mutant.counters.values_digest, original.counters.values_digest);
}

TEST_F(Mutation, ReachedButNeverInfected) {
  const Outcome original = run();
  // The last barrier has nothing after it.
  const kv_simt_mutation barrier = find(KV_SIMT_MUTATE_BARRIER, "bar.sync", 2);
  ASSERT_EQ(control().mutate(&barrier), 0);
  const Outcome mutant = run();
  EXPECT_TRUE(mutant.reached());
  EXPECT_EQ(mutant.kinds, Kinds());
  EXPECT_EQ(mutant.out, original.out);
  EXPECT_EQ(mutant.counters.values_digest, original.counters.values_digest);
}

TEST_F(Mutation, SchedulesDoNotChangeTheDigest) {
  const uint64_t digest = run().counters.values_digest;
  for (uint64_t seed = 1; seed < 6; ++seed) {
    kv_simt_config config = current();
    config.schedule_seed = seed;
    configure(config);
    EXPECT_EQ(run().counters.values_digest, digest) << seed;
  }
}

TEST_F(Mutation, ANarrowedOffsetShowsBeyondTwoGigabytesOnly) {
  const Outcome original = run();
  int reached = 0;
  for (const kv_simt_mutation& m : mutations_of("row_sums")) {
    if (m.op != KV_SIMT_MUTATE_NARROW) continue;
    ASSERT_EQ(control().mutate(&m), 0);
    const Outcome mutant = run();
    reached += mutant.reached();
    EXPECT_EQ(mutant.out, original.out);
    EXPECT_EQ(mutant.counters.values_digest, original.counters.values_digest);
  }
  EXPECT_GT(reached, 0);
}

TEST_F(Mutation, WhatDoesNotExistIsRefused) {
  run();
  kv_simt_mutation m = find(KV_SIMT_MUTATE_BARRIER, "bar.sync");
  m.variant = 77;
  EXPECT_EQ(control().mutate(&m), -1);
  EXPECT_NE(std::string(control().last_error()).find("no such change of bar.sync"),
            std::string::npos);
  m.instruction = 1u << 30;
  EXPECT_EQ(control().mutate(&m), -1);
  m.function = 1u << 30;
  EXPECT_EQ(control().mutate(&m), -1);
  EXPECT_EQ(run().counters.mutated_executions, 0u);
  kv_simt_mutation out = {};
  out.struct_bytes = sizeof out;
  EXPECT_EQ(control().mutation(control().mutation_count(), &out), -1);
}

/// Another process looks at a module first, so that this one can choose before it is loaded.
TEST_F(Mutation, MayBeChosenBeforeItsModuleIsLoaded) {
  int channel[2];
  ASSERT_EQ(pipe(channel), 0);
  const pid_t child = fork();
  if (child == 0) {
    launch_fill_first(upload(std::vector<int>(32)), 4);
    cudaDeviceSynchronize();
    for (const kv_simt_mutation& m : mutations_of("fill_first")) {
      if (m.op != KV_SIMT_MUTATE_COMPARE || m.variant != 0) continue;
      if (write(channel[1], &m, sizeof m) != sizeof m) _exit(1);
    }
    _exit(0);
  }
  kv_simt_mutation m = {};
  ASSERT_EQ(read(channel[0], &m, sizeof m), ssize_t(sizeof m));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(channel[0]);
  close(channel[1]);
  ASSERT_EQ(control().mutate(&m), 0);
  int* const out = upload(std::vector<int>(32));
  launch_fill_first(out, 4);
  const std::vector<int> got = download(out, 32);
  // setp.ge (skip) became setp.gt: one more element is written.
  EXPECT_EQ(std::count(got.begin(), got.end(), 5), 5) << m.before << " -> " << m.after;
}

TEST_F(Mutation, ExecutionsAreCountedWhenAskedFor) {
  run();
  for (const kv_simt_mutation& m : mutations_of("row_sums")) EXPECT_EQ(m.executions, 0u);
  collect(KV_SIMT_COLLECT_EXECUTIONS);
  run();
  const auto barrier = [] { return find(KV_SIMT_MUTATE_BARRIER, "bar.sync").executions; };
  EXPECT_EQ(barrier(), 4u) << "2 blocks of 2 warps";
  run();
  EXPECT_EQ(barrier(), 8u);
  // `skipped > 1000` never holds: what it guards is not executed.
  const auto all = mutations_of("row_sums");
  EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const auto& m) { return !m.executions; }));
  ASSERT_EQ(control().clear_executions(), 0);
  EXPECT_EQ(barrier(), 0u);
}

size_t hit(const std::vector<uint8_t>& edges) {
  return size_t(std::count_if(edges.begin(), edges.end(), [](uint8_t e) { return e != 0; }));
}

TEST_F(Mutation, EdgesAreCountedInTheCallersMemory) {
  std::vector<uint8_t> edges(1 << 12), again(1 << 12), other(1 << 12);
  ASSERT_EQ(control().set_edge_counters(edges.data(), edges.size()), 0);
  run();
  ASSERT_EQ(control().set_edge_counters(again.data(), again.size()), 0);
  run();
  ASSERT_EQ(control().set_edge_counters(other.data(), other.size()), 0);
  run({.rows = 2, .columns = 64, .skipped = 3});
  EXPECT_GT(hit(edges), 3u);
  EXPECT_EQ(edges, again);
  EXPECT_NE(edges, other) << "no thread leaves early when the row is full";
  ASSERT_EQ(control().set_edge_counters(nullptr, 0), 0);
  run();
  EXPECT_EQ(control().set_edge_counters(nullptr, 5), -1);
}

TEST_F(Mutation, EdgeCountersStopAtTheirLimit) {
  std::vector<uint8_t> edges(1 << 12);
  ASSERT_EQ(control().set_edge_counters(edges.data(), edges.size()), 0);
  run({.rows = 300, .columns = 60, .skipped = 3});
  EXPECT_EQ(*std::max_element(edges.begin(), edges.end()), 255);
}

}  // namespace
}  // namespace kv::simt::programs
