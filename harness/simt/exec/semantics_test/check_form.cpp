// Runs a form on the CPU device and compares every row with its definition.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "harness/simt/exec/semantics_test/bench.h"
#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/values.h"

namespace kv::simt::semantics {
namespace {

bool accepts(const Outcome& outcome, uint64_t got) {
  return outcome.unspecified || got == outcome.want || (outcome.also && got == *outcome.also) ||
         (outcome.accept && outcome.accept(got));
}

std::string describe(const Form& form, const uint64_t* from, size_t to, const Outcome& outcome,
                     uint64_t got) {
  std::ostringstream text;
  text << std::hex << form.text << " of";
  for (size_t i = 0; i < form.from.size(); ++i) text << " " << form.from[i] << " 0x" << from[i];
  text << ": destination " << to << " want 0x" << outcome.want;
  if (outcome.also) text << " or 0x" << *outcome.also;
  text << ", got 0x" << got << " (section " << form.section << ")";
  return text.str();
}

/// Operands of each row, densely; as many rows as whole blocks need.
std::vector<uint64_t> source_rows(const Form& form, size_t* rows) {
  const auto columns = operand_tuples({form.from.begin(), form.from.end()}, form.pairs_max);
  const size_t width = form.from.size();
  *rows = (columns[0].size() + form.threads - 1) / form.threads * form.threads;
  std::vector<uint64_t> in(*rows * width);
  for (size_t row = 0; row < *rows; ++row) {
    const size_t source = row % columns[0].size();
    for (size_t k = 0; k < width; ++k) in[row * width + k] = columns[k][source];
  }
  return in;
}

/// The same, with rows as wide in memory as the kernel expects.
std::vector<uint64_t> spaced(const std::vector<uint64_t>& in, size_t width) {
  const size_t rows = in.size() / width, stride = row_words(width);
  std::vector<uint64_t> out(rows * stride);
  for (size_t i = 0; i < in.size(); ++i) out[i / width * stride + i % width] = in[i];
  return out;
}

std::vector<Outcome> define_rows(const Form& form, const std::vector<uint64_t>& in, size_t rows) {
  const size_t width = form.from.size(), results = form.to.size();
  std::vector<Outcome> outcomes(rows * results);
  for (size_t row = 0; row < rows; row += form.define ? 1 : 32) {
    if (form.define) {
      form.define(&in[row * width], &outcomes[row * results]);
    } else {
      form.define_warp(row, &in[row * width], &outcomes[row * results]);
    }
  }
  return outcomes;
}

}  // namespace

void check_form(const Form& form) {
  size_t rows = 0;
  const std::vector<uint64_t> in = source_rows(form, &rows);
  Bench bench(module_text(form), form.sm);
  if (!bench.ready()) return;
  const uint64_t from = bench.upload(spaced(in, form.from.size()));
  const size_t results = form.to.size(), stride = row_words(results);
  const uint64_t to = bench.reserve(rows * stride * 8);
  LaunchShape shape;
  shape.grid = {uint32_t(rows / form.threads), 1, 1};
  shape.block = {form.threads, 1, 1};
  const Bench::Ran ran = bench.launch(shape, {from, to, kExtra[0], kExtra[1]});
  const bool listed = unsupported().contains(form.text);
  if (ran == Bench::Ran::kUnsupported && listed) GTEST_SKIP() << "not supported: " << form.text;
  EXPECT_NE(ran, Bench::Ran::kUnsupported) << "not supported, nor in unsupported.txt";
  EXPECT_FALSE(listed) << "supported by now: strike it from unsupported.txt";
  if (ran != Bench::Ran::kToItsEnd) return;
  const auto got = bench.download<uint64_t>(to, rows * stride);
  const std::vector<Outcome> outcomes = define_rows(form, in, rows);
  size_t wrong = 0;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const size_t row = i / results, place = i % results;
    const uint64_t value = got[row * stride + place];
    if (accepts(outcomes[i], value) || ++wrong > 3) continue;
    ADD_FAILURE() << describe(form, &in[row * form.from.size()], place, outcomes[i], value)
                  << ", row " << row;
  }
  EXPECT_EQ(wrong, 0u) << "wrong results of " << outcomes.size() << ": " << form.text;
}

}  // namespace kv::simt::semantics
