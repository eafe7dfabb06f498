#include "harness/case/json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "harness/case/full_case.h"
#include "harness/case/limits.h"
#include "harness/case/names.h"
#include "harness/case/utf8.h"
#include "harness/case/validate.h"

namespace kv {
namespace {

std::string error_of(std::string_view text) {
  const Result<Case> c = parse_case(text, "t");
  return c.ok() ? "" : c.error().message;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(Json, RoundTripsEveryField) {
  const Case c = full_case();
  const std::string text = case_to_json(c);
  const Result<Case> back = parse_case(text, "t");
  ASSERT_TRUE(back.ok()) << back.error().message << "\n" << text;
  EXPECT_EQ(*back, c);
  EXPECT_EQ(case_to_json(*back), text);
  EXPECT_TRUE(std::signbit(back->data.overrides[0].value));
}

TEST(Json, TheFullCaseLeavesNoDefault) {
  // Otherwise the round trip above would not notice a field that is neither read nor written.
  const Case full = full_case(), none;
  EXPECT_NE(full.shape.rope, none.shape.rope);
  std::set<size_t> kinds;
  for (const Op& op : full.ops) kinds.insert(op.index());
  EXPECT_EQ(kinds.size(), std::variant_size_v<Op>);
}

TEST(Json, EveryNameRoundTrips) {
  Case c;
  const auto check = [&](auto& member) {
    using E = std::remove_reference_t<decltype(member)>;
    const auto names = name_table<E>();
    for (size_t i = 0; i < names.size(); ++i) {
      member = static_cast<E>(i);
      const Result<Case> back = parse_case(case_to_json(c), "t");
      ASSERT_TRUE(back.ok()) << back.error().message;
      EXPECT_EQ(*back, c) << names[i];
    }
    member = E{};
  };
  check(c.shape.query_dtype);
  check(c.shape.kv_scale);
  check(c.mask.causal);
  check(c.mask.encoding);
  check(c.pool.order);
  check(c.pool.layout);
  check(c.pool.poison);
  check(c.data.design);
  check(c.exec.rounding);
  c.ops = {op::Hostile{}};
  check(std::get<op::Hostile>(c.ops[0]).kind);
}

TEST(Json, TextIsCanonicalHoweverItWasWritten) {
  const std::string text = case_to_json(full_case());
  std::string spaced = replaced(text, "\"version\": 1,", "\"version\":1 ,\r\n\t ");
  EXPECT_EQ(case_to_json(parse_case(spaced, "t").value()), text);
}

TEST(Json, MessagesNameThePathTheExpectedAndTheFound) {
  const std::string text = case_to_json(full_case());
  const auto with = [&](std::string_view from, std::string_view to) {
    return error_of(replaced(text, from, to));
  };
  EXPECT_EQ(with("\"layers\": 2", "\"layers\": 0"),
            "t: shape.layers: expected an integer from 1 to 256, got 0");
  EXPECT_EQ(with("\"layers\": 2", "\"layers\": -1"),
            "t: shape.layers: expected an integer from 1 to 256, got -1");
  EXPECT_EQ(with("\"layers\": 2", "\"layers\": 2.0"),
            "t: shape.layers: expected an integer from 1 to 256, got 2.0");
  EXPECT_EQ(with("\"layers\": 2", "\"layers\": \"2\""),
            "t: shape.layers: expected an integer from 1 to 256, got \"2\"");
  EXPECT_EQ(with("\"layers\": 2, ", ""),
            "t: shape.layers: expected an integer from 1 to 256, got no such key");
  EXPECT_EQ(with("\"layers\"", "\"layers\": 1, \"layers\""), "t: shape: duplicate key \"layers\"");
  EXPECT_EQ(with("\"pad_left\": 1", "\"pad_lefd\": 1"),
            "t: ops[3].rows[0]: expected only the keys request, append, pad_left, pad_right, "
            "queries, tree_parents, speculative, cancel_before_layer, got \"pad_lefd\"");
  EXPECT_EQ(with("\"op\": \"defrag\"", "\"op\": \"defrog\"").substr(0, 47),
            "t: ops[14].op: expected one of \"admit\", \"append");
  EXPECT_EQ(with("18446744073709551615", "18446744073709551616"),
            "t: data.seed: expected an integer from 0 to 18446744073709551615, got "
            "1.8446744073709552e+19");
  EXPECT_EQ(with("\"softcap\": 50.0", "\"softcap\": 1e999").substr(0, 26),
            "t: number overflow parsing");
  EXPECT_EQ(with("\"softcap\": 50.0", "\"softcap\": NaN").substr(0, 30),
            "t: parse error at line 5, colu");
  EXPECT_EQ(with("0.10000000149011612", "0.1"),
            "t: shape.scale: expected a number that float32 holds exactly (the nearest is "
            "0.10000000149011612), got 0.1");
  EXPECT_EQ(with("\"version\": 1", "\"version\": 2"),
            "t: version: expected an integer from 1 to 1, got 2");
  EXPECT_EQ(with("\"swap\": true", "\"swap\": 1"),
            "t: ops[10].swap: expected true or false, got 1");
}

TEST(Json, FieldsThatBindEachOtherAreChecked) {
  const auto wrong = [](auto change) {
    Case c = full_case();
    change(c);
    const Result<void> checked = check_case(c);
    return checked.ok() ? std::string() : checked.error().message;
  };
  EXPECT_EQ(wrong([](Case&) {}), "");
  EXPECT_EQ(wrong([](Case& c) { c.shape.query_heads = 7; }),
            "shape.query_heads: expected a multiple of kv_heads 3, got 7");
  EXPECT_EQ(wrong([](Case& c) { c.pool.page_slots = 24; }),
            "pool.page_slots: expected a power of two, got 24");
  EXPECT_EQ(wrong([](Case& c) { c.pool.page_count = 1u << 20; }).substr(0, 22),
            "pool: expected at most");
  EXPECT_NE(wrong([](Case& c) { std::swap(c.data.overrides[0], c.data.overrides[1]); }), "");
  EXPECT_NE(wrong([](Case& c) { c.data.overrides[1] = c.data.overrides[0]; }), "");
  EXPECT_NE(wrong([](Case& c) { c.data.overrides[1].head = 3; }), "");
  EXPECT_NE(wrong([](Case& c) { c.shape.rope.dims = 98; }), "");
  EXPECT_NE(wrong([](Case& c) { c.shape.rope.pairing = RopePairing::kNone; }), "");
  EXPECT_NE(wrong([](Case& c) { std::get<op::Admit>(c.ops[1]).prefix_tokens = 21; }), "");
  EXPECT_NE(wrong([](Case& c) { std::get<op::Admit>(c.ops[1]).prefix_of.reset(); }), "");
  EXPECT_NE(wrong([](Case& c) { std::get<op::Step>(c.ops[3]).rows[0].tree_parents[1] = 1; }), "");
  EXPECT_NE(wrong([](Case& c) { std::get<op::Reorder>(c.ops[5]).beams.pop_back(); }), "");
  EXPECT_NE(wrong([](Case& c) { std::get<op::Shift>(c.ops[7]).begin = 5; }), "");
  EXPECT_NE(wrong([](Case& c) { c.shape.scale = NAN; }), "");
  EXPECT_NE(wrong([](Case& c) { std::get<op::Step>(c.ops[3]).rows[0].speculative = 4; }), "");
  EXPECT_EQ(wrong([](Case& c) { c.engine->groups.pop_back(); }),
            "engine.groups: expected 2 layers in all, as the shape, got 1");
  EXPECT_NE(wrong([](Case& c) { c.name = "escape \x1b[2J"; }), "");
  EXPECT_NE(wrong([](Case& c) { c.mask.causal = static_cast<Causal>(9); }), "");
}

// Fails when what a case asks of the kernel level goes by in silence where an engine is judged.
TEST(Json, WhatNoEngineIsToldIsRefused) {
  const auto said = [](auto change) {
    Case c;
    c.engine.emplace();
    c.ops = {op::Admit{}, op::Step{.rows = {{.append = 1}}}};
    change(c);
    const Result<void> checked = check_history(c);
    return checked.ok() ? std::string() : checked.error().message.substr(0, 24);
  };
  EXPECT_EQ(said([](Case&) {}), "");
  EXPECT_EQ(said([](Case& c) { c.mask.window_left = 3; }), "");
  EXPECT_EQ(said([](Case& c) { c.exec.graph = true; }), "exec.graph: expected its");
  EXPECT_EQ(said([](Case& c) { c.exec.variant = "x"; }), "exec.variant: expected i");
  EXPECT_EQ(said([](Case& c) { c.exec.split_slots = 8; }), "exec.split_slots: expect");
  EXPECT_EQ(said([](Case& c) { c.exec.cascade_slots = 8; }), "exec.cascade_slots: expe");
  EXPECT_EQ(said([](Case& c) { c.exec.schedule_seed = 8; }), "exec.schedule_seed: expe");
  EXPECT_EQ(said([](Case& c) { c.exec.rounding = Rounding::kUp; }), "exec.rounding: expected ");
  EXPECT_EQ(said([](Case& c) { c.exec.repeat = 2; }), "exec.repeat: expected it");
  EXPECT_EQ(said([](Case& c) { c.exec.preceding = {"a"}; }), "exec.preceding: expected");
  EXPECT_EQ(said([](Case& c) { c.pool.layout = CacheLayout::kHeadSlot; }),
            "pool.layout: expected it");
  EXPECT_EQ(said([](Case& c) { c.pool.order = PageOrder::kFarApart; }), "pool.order: expected its");
  EXPECT_EQ(said([](Case& c) { c.pool.poison = Poison::kNan; }), "pool.poison: expected it");
  EXPECT_EQ(said([](Case& c) { c.mask.encoding = MaskEncoding::kBoolKeep; }),
            "mask.encoding: expected ");
  EXPECT_EQ(said([](Case& c) { c.data.overrides.emplace_back(); }), "data.overrides: expected");
  EXPECT_EQ(said([](Case& c) { c.data.digest = 5; }), "data.digest: expected it");
  EXPECT_EQ(said([](Case& c) { c.data.tensors_file = "t"; }), "data.tensors_file: expec");
  EXPECT_EQ(said([](Case& c) {
              c.engine->groups = {{.layers = 1}};
              c.mask.window_left = 3;
            }),
            "mask.window_left beside ");
  EXPECT_EQ(said([](Case& c) { std::get<op::Step>(c.ops[1]).rows[0].pad_left = 1; }),
            "ops[1].rows[0]: expected");
}

TEST(Json, LimitsHoldForTheWholeText) {
  const std::string deepest = error_of(std::string(100000, '['));
  EXPECT_EQ(deepest.substr(deepest.size() - 24), "]: nested deeper than 16");
  std::string many = "[0";
  for (uint64_t i = 0; i <= limits::kJsonValuesMax; ++i) many += ",0";
  EXPECT_EQ(error_of(many + "]"), "t: the document: more than 4194304 values");
  std::string wide = "{\"0\":0";
  for (int i = 1; i < 100; ++i) wide += ",\"" + std::to_string(i) + "\":0";
  EXPECT_EQ(error_of(wide + "}"), "t: the document: an object of more than 64 members");
  EXPECT_EQ(error_of(std::string(limits::kFileBytesMax + 1, ' ')),
            "t: expected at most 33554432 bytes, got 33554433");
  EXPECT_EQ(error_of("").substr(0, 30), "t: parse error at line 1, colu");
  EXPECT_EQ(error_of("[]"), "t: case: expected an object, got a list of 0 items");
  EXPECT_NE(error_of(case_to_json(full_case()) + "x"), "");
}

TEST(Json, Utf8IsWellFormedAndPrintable) {
  EXPECT_TRUE(printable_utf8("a\n\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x99"));
  for (const char* bad : {"\x1b", "\x7f", "\xc2\x85", "\xc0\xaf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xe2\x82", "\x80", "\xff"}) {
    EXPECT_FALSE(printable_utf8(bad));
  }
}

class JsonFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const char* name) const { return (directory_ / name).string(); }
  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("kv_json_" + std::to_string(getpid()));
};

TEST_F(JsonFile, SavesAndLoads) {
  ASSERT_TRUE(save_case(path("a.json"), Case{}).ok());
  Case c = full_case();
  c.data.tensors_file = "";  // side_car_test has those that name a file
  ASSERT_TRUE(save_case(path("a.json"), c).ok());
  EXPECT_EQ(load_case(path("a.json")).value(), c);
  const auto entries = std::filesystem::directory_iterator(directory_);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1) << "the temporary file is gone";
}

TEST_F(JsonFile, FailuresLeaveTheOldFile) {
  ASSERT_TRUE(save_case(path("a.json"), Case{}).ok());
  std::filesystem::create_directory(directory_ / "d");
  EXPECT_EQ(save_case(path("d"), full_case()).error().kind, ErrorKind::kBadInput);  // a folder
  EXPECT_EQ(save_case(path("none/a.json"), full_case()).error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(load_case(path("a.json")).value(), Case{});
}

TEST_F(JsonFile, OnlyRegularFilesAreRead) {
  EXPECT_EQ(load_case(path("absent")).error().message, path("absent") + ": no such file");
  EXPECT_EQ(load_case(path("")).error().message, path("") + ": expected a regular file");
  EXPECT_EQ(load_case("/dev/zero").error().message, "/dev/zero: expected a regular file");
}

}  // namespace
}  // namespace kv
