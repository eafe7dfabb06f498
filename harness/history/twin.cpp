#include "harness/history/twin.h"

#include <algorithm>

#include "harness/history/twin_ops.h"

namespace kv {

std::span<const TwinRelation> twin_relations() {
  static constexpr TwinRelation kAll[] = {
      {"alone", "a request by itself: no other is there, ever", "86_split_by_company", twin_alone},
      {"never-speculated", "only what was accepted is appended, nothing taken back",
       "87_split_after_rollback", twin_never_speculated},
      {"without-cancelled", "a request that was cancelled was never there",
       "88_cancelled_row_counts", twin_without_cancelled},
      {"cold", "the prefix cache is off where it was on, and on where it was off",
       "89_split_after_hit", twin_cold},
      {"never-preempted", "nobody gives way, to the host or to be recomputed",
       "214_split_after_resume", twin_never_preempted},
      {"recomputed", "what was restored from bytes is computed instead", "215_split_after_restore",
       twin_recomputed},
      {"beams-renamed", "beams change names instead of contents", "216_split_after_reorder",
       twin_beams_renamed},
  };
  return kAll;
}

const TwinRelation* find_twin(std::string_view name) {
  const auto all = twin_relations();
  const auto found = std::find_if(
      all.begin(), all.end(), [&](const TwinRelation& relation) { return relation.name == name; });
  return found == all.end() ? nullptr : &*found;
}

void draw_twin(ChoiceSource& choices, Case& c) {
  if (choices.one_in(2)) return;
  const auto all = twin_relations();
  c.exec.relation = all[choices.below(all.size())].name;
  c.exec.relation_seed = choices.below(uint64_t{1} << 16);
}

namespace {

HistoryResult run_twin(const Twin& twin, Engine& engine, const JudgeSettings& settings) {
  HistoryJudge judge(twin.c, engine, settings);
  HistoryResult result;
  for (const TwinOp& op : twin.ops) {
    const bool told = !op.told.tokens.empty();
    result.finding = judge.perform(op.op, told ? &op.told : nullptr);
    if (result.finding) break;
  }
  if (!result.finding) result.finding = judge.finish();
  result.stats = judge.stats();
  result.records = judge.records();
  const auto place = [&twin](uint32_t index) {
    if (index < twin.ops.size()) return twin.ops[index].op_index;
    return static_cast<uint32_t>(twin.c.ops.size());
  };
  for (OpRecord& record : result.records) record.op_index = place(record.op_index);
  if (result.finding) {
    result.finding->op_index = place(result.finding->op_index);
    result.finding->twin = twin.c.exec.relation;
  }
  return result;
}

}  // namespace

Result<HistoryResult> run_with_twin(const Case& c, const MakeEngine& make, JudgeSettings settings) {
  const TwinRelation* relation = find_twin(c.exec.relation);
  Echo echo;
  if (relation != nullptr) {
    settings.keep_happened = true;
    if (promises_echo(settings.conventions)) settings.echo = &echo;
  }
  KV_ASSIGN_OR_RETURN(Engine * engine, make(c));
  HistoryResult first = run_history(c, *engine, settings);
  if (first.finding || relation == nullptr) return first;
  Twin twin{.c = c, .ops = {}};
  if (!relation->derive(first.happened, c.exec.relation_seed, twin)) return first;
  Result<Engine*> again = make(twin.c);
  if (!again.ok() && again.error().kind == ErrorKind::kUnsupported) return first;
  if (!again.ok()) return again.error();
  settings.keep_happened = false;
  settings.value_steps = 0;
  echo.begin_twin(c.exec.relation);
  HistoryResult second = run_twin(twin, **again, settings);
  // Code that the device does not know, and that the case itself did not come to.
  if (second.finding && second.finding->check == CheckClass::kUnsupported) return first;
  first.stats.twins = 1;
  first.stats.twin_operations = second.stats.operations;
  first.stats.values.repeats = second.stats.values.repeats;
  first.stats.values.shared = second.stats.values.shared;
  if (second.finding) {
    first.finding = std::move(second.finding);
    first.records = std::move(second.records);
  }
  return first;
}

}  // namespace kv
