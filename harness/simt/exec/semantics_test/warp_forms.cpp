// What the lanes of a warp do together, PTX ISA 9.0 sections 9.7.9.6 and 9.7.13. Every lane takes
// part (mask -1) unless the form says otherwise.
#include <algorithm>

#include "harness/simt/exec/semantics_test/form.h"
#include "harness/simt/exec/semantics_test/integer.h"

namespace kv::simt::semantics {
namespace {

using Forms = std::vector<Form>;
constexpr uint64_t kTuples = 2000;

Form warp_form(std::string text, std::vector<Operand> to, std::vector<Operand> from,
               std::string_view section,
               std::function<void(uint64_t, const uint64_t*, Outcome*)> define) {
  return {.text = std::move(text),
          .to = std::move(to),
          .from = std::move(from),
          .section = section,
          .pairs_max = kTuples,
          .define_warp = std::move(define),
          .threads = 32};
}

/// Section 9.7.9.6, word for word. A source lane out of range gives the lane's own value.
struct Shuffle {
  int source;
  bool in_range;
};
Shuffle shuffle(std::string_view mode, int lane, uint64_t b, uint64_t c) {
  const int bval = int(b & 31), cval = int(c & 31), segment = int(c >> 8 & 31);
  const int most = (lane & segment) | (cval & ~segment);
  const int least = lane & segment;
  int j = 0;
  bool in_range = false;
  if (mode == "up") {
    j = lane - bval;
    in_range = j >= most;
  } else if (mode == "down") {
    j = lane + bval;
    in_range = j <= most;
  } else if (mode == "bfly") {
    j = lane ^ bval;
    in_range = j <= most;
  } else {
    j = least | (bval & ~segment);
    in_range = j <= most;
  }
  return {in_range ? j : lane, in_range};
}

void shuffles(Forms& forms) {
  struct Clamp {
    const char* text;
    uint64_t value;
  };
  for (const char* mode : {"up", "down", "bfly", "idx"}) {
    const bool up = mode[0] == 'u';
    for (const uint64_t width : {32, 16, 8, 4, 1}) {
      const uint64_t c = (32 - width) << 8 | (up ? 0 : 31);
      for (const uint64_t b : {0, 1, 2, 5, 16, 31}) {
        forms.push_back(warp_form("shfl.sync." + std::string(mode) + ".b32 $0|$1, $2, " +
                                      std::to_string(b) + ", " + std::to_string(c) + ", -1;",
                                  {"b32", "pred"}, {"b32"}, "9.7.9.6",
                                  [=](uint64_t, const uint64_t* s, Outcome* d) {
                                    for (int lane = 0; lane < 32; ++lane) {
                                      const Shuffle from = shuffle(mode, lane, b, c);
                                      d[2 * lane].want = s[from.source];
                                      d[2 * lane + 1].want = from.in_range;
                                    }
                                  }));
        forms.back().pairs_max = 128;
      }
    }
    // Source lane and clamp in registers, different in each lane, and no predicate.
    forms.push_back(warp_form(
        "shfl.sync." + std::string(mode) + ".b32 $0, $1, $2, $3, -1;", {"b32"},
        {"b32", "shift32", "b32"}, "9.7.9.6", [=](uint64_t, const uint64_t* s, Outcome* d) {
          for (int lane = 0; lane < 32; ++lane) {
            const Shuffle from = shuffle(mode, lane, s[3 * lane + 1], s[3 * lane + 2]);
            // A negative lane number happens only outside of the range.
            d[lane].want = s[3 * from.source];
          }
        }));
  }
}

/// Half of the warp, in a branch that the other half does not take.
void partial(Forms& forms) {
  forms.push_back(warp_form(
      "{ .reg .pred h; .reg .b32 t; mov.u32 t, %laneid; and.b32 t, t, 1; setp.eq.u32 h, t, 0; "
      "mov.b32 $0, $1; "
      "@!h bra ODD; shfl.sync.bfly.b32 $0, $1, 2, 31, 0x55555555; ODD: bar.warp.sync -1; }",
      {"b32"}, {"b32"}, "9.7.9.6", [](uint64_t, const uint64_t* s, Outcome* d) {
        for (int lane = 0; lane < 32; ++lane) d[lane].want = lane % 2 ? s[lane] : s[lane ^ 2];
      }));
  forms.push_back(
      warp_form("{ .reg .pred h; setp.ne.u32 h, $1, 0; mov.b32 $0, 0; @!h bra REST; activemask.b32 "
                "$0; REST: bar.warp.sync -1; }",
                {"b32"}, {"b32"}, "9.7.13.11", [](uint64_t, const uint64_t* s, Outcome* d) {
                  // Any set of active lanes that includes this one is conforming; no lane outside
                  // the branch.
                  uint32_t taken = 0;
                  for (int lane = 0; lane < 32; ++lane) taken |= uint32_t(s[lane] != 0) << lane;
                  for (int lane = 0; lane < 32; ++lane) {
                    if (s[lane] == 0) continue;
                    d[lane].want = taken;
                    d[lane].accept = [=](uint64_t got) {
                      return (got >> lane & 1) && (got & ~uint64_t{taken}) == 0;
                    };
                  }
                }));
  forms.push_back(warp_form("activemask.b32 $0; xor.b32 $0, $0, $1;", {"b32"}, {"b32"}, "9.7.13.11",
                            [](uint64_t, const uint64_t* s, Outcome* d) {
                              for (int lane = 0; lane < 32; ++lane)
                                d[lane].want = ~s[lane] & 0xffffffff;
                            }));
}

void votes(Forms& forms) {
  for (const bool negated : {false, true}) {
    const std::string source = negated ? "!$1" : "$1";
    const auto ballot = [=](const uint64_t* s) {
      uint32_t mask = 0;
      for (int lane = 0; lane < 32; ++lane) mask |= uint32_t((s[lane] != 0) != negated) << lane;
      return mask;
    };
    const auto vote = [&](const char* mode, Operand to, std::function<uint64_t(uint32_t)> result) {
      forms.push_back(warp_form(std::string("vote.sync.") + mode +
                                    (to == "pred" ? ".pred" : ".b32") + " $0, " + source + ", -1;",
                                {to}, {"pred"}, "9.7.13.9",
                                [=](uint64_t, const uint64_t* s, Outcome* d) {
                                  for (int lane = 0; lane < 32; ++lane)
                                    d[lane].want = result(ballot(s));
                                }));
    };
    vote("all", "pred", [](uint32_t mask) { return mask == 0xffffffff; });
    vote("any", "pred", [](uint32_t mask) { return mask != 0; });
    vote("uni", "pred", [](uint32_t mask) { return mask == 0 || mask == 0xffffffff; });
    vote("ballot", "b32", [](uint32_t mask) { return mask; });
  }
  // A uniform and a nearly uniform source: random predicates never agree.
  for (const char* mode : {"all", "any", "uni"}) {
    for (const int chosen : {0, 1, 32}) {
      const std::string text =
          "{ .reg .pred q; .reg .b32 t; mov.u32 t, %laneid; setp.lt.u32 q, t, " +
          std::to_string(chosen) + "; vote.sync." + mode + ".pred $0, q, -1; }";
      const bool want = mode[1] == 'l'                     ? chosen == 32
                        : mode[1] == 'n' && mode[0] == 'a' ? chosen != 0
                                                           : chosen != 1;
      forms.push_back(warp_form(text, {"pred"}, {"b32"}, "9.7.13.9",
                                [=](uint64_t, const uint64_t*, Outcome* d) {
                                  for (int lane = 0; lane < 32; ++lane) d[lane].want = want;
                                }));
      forms.back().pairs_max = 64;
    }
  }
}

void matches(Forms& forms) {
  for (const char* type : {"b32", "b64"}) {
    // Few distinct values, so that lanes agree.
    const std::string narrow = std::string("{ .reg .") + type + " v; and." + type + " v, $";
    forms.push_back(warp_form(narrow + "1, 3; match.any.sync." + type + " $0, v, -1; }", {"b32"},
                              {type}, "9.7.13.10", [](uint64_t, const uint64_t* s, Outcome* d) {
                                for (int lane = 0; lane < 32; ++lane) {
                                  for (int other = 0; other < 32; ++other) {
                                    d[lane].want |= uint64_t((s[other] & 3) == (s[lane] & 3))
                                                    << other;
                                  }
                                }
                              }));
    for (const char* mask : {"3", "0"}) {
      forms.push_back(warp_form(
          narrow + "2, " + mask + "; match.all.sync." + type + " $0|$1, v, -1; }", {"b32", "pred"},
          {type}, "9.7.13.10", [=](uint64_t, const uint64_t* s, Outcome* d) {
            const uint64_t bits = mask[0] == '3' ? 3 : 0;
            bool all = true;
            for (int lane = 1; lane < 32; ++lane) all &= (s[lane] & bits) == (s[0] & bits);
            for (int lane = 0; lane < 32; ++lane) {
              d[2 * lane].want = all ? 0xffffffff : 0;
              d[2 * lane + 1].want = all;
            }
          }));
    }
  }
}

void reductions(Forms& forms) {
  struct Op {
    const char *name, *type;
    std::function<Wide(Wide, Wide)> define;
  };
  const auto smaller = [](Wide a, Wide b) { return std::min(a, b); };
  const auto larger = [](Wide a, Wide b) { return std::max(a, b); };
  const auto sum = [](Wide a, Wide b) { return a + b; };
  const Op ops[] = {{"add", "u32", sum},
                    {"add", "s32", sum},
                    {"min", "u32", smaller},
                    {"min", "s32", smaller},
                    {"max", "u32", larger},
                    {"max", "s32", larger},
                    {"and", "b32", [](Wide a, Wide b) { return a & b; }},
                    {"or", "b32", [](Wide a, Wide b) { return a | b; }},
                    {"xor", "b32", [](Wide a, Wide b) { return a ^ b; }}};
  for (const Op& op : ops) {
    forms.push_back(warp_form(std::string("redux.sync.") + op.name + "." + op.type + " $0, $1, -1;",
                              {op.type}, {op.type}, "9.7.13.12",
                              [=](uint64_t, const uint64_t* s, Outcome* d) {
                                const Integer t(op.type);
                                Wide total = t.value(s[0]);
                                for (int lane = 1; lane < 32; ++lane)
                                  total = op.define(total, t.value(s[lane]));
                                for (int lane = 0; lane < 32; ++lane) d[lane].want = t.wrap(total);
                              }));
  }
}

void elect(Forms& forms) {
  Form form =
      warp_form("elect.sync $0|$1, -1; xor.b32 $0, $0, $2;", {"b32", "pred"}, {"b32"}, "9.7.13.15",
                [](uint64_t, const uint64_t* s, Outcome* d) {
                  // Which lane leads is open; it is deterministic, and the lowest is usual.
                  for (int lane = 0; lane < 32; ++lane) {
                    d[2 * lane].want = s[lane];
                    d[2 * lane].accept = [own = s[lane]](uint64_t got) { return (got ^ own) < 32; };
                    d[2 * lane + 1].want = lane == 0;
                    d[2 * lane + 1].unspecified = true;
                  }
                });
  form.sm = 90;
  forms.push_back(form);
}

/// Special registers, in blocks of 32 threads along x.
void special_registers(Forms& forms) {
  struct Row {
    const char* name;
    std::function<uint64_t(uint64_t row)> define;
  };
  const Row rows[] = {
      {"%tid.x", [](uint64_t row) { return row % 32; }},
      {"%tid.y", [](uint64_t) { return 0; }},
      {"%tid.z", [](uint64_t) { return 0; }},
      {"%ntid.x", [](uint64_t) { return 32; }},
      {"%ntid.y", [](uint64_t) { return 1; }},
      {"%ntid.z", [](uint64_t) { return 1; }},
      {"%ctaid.x", [](uint64_t row) { return row / 32; }},
      {"%ctaid.y", [](uint64_t) { return 0; }},
      {"%nctaid.y", [](uint64_t) { return 1; }},
      {"%nctaid.z", [](uint64_t) { return 1; }},
      {"%laneid", [](uint64_t row) { return row % 32; }},
      {"%lanemask_eq", [](uint64_t row) { return uint64_t{1} << row % 32; }},
      {"%lanemask_le", [](uint64_t row) { return (uint64_t{2} << row % 32) - 1; }},
      {"%lanemask_lt", [](uint64_t row) { return (uint64_t{1} << row % 32) - 1; }},
      {"%lanemask_ge", [](uint64_t row) { return ~((uint64_t{1} << row % 32) - 1) & 0xffffffff; }},
      {"%lanemask_gt", [](uint64_t row) { return ~((uint64_t{2} << row % 32) - 1) & 0xffffffff; }}};
  for (const Row& row : rows) {
    forms.push_back(warp_form(std::string("mov.u32 $0, ") + row.name + ";", {"u32"}, {"u32"}, "10",
                              [=](uint64_t first, const uint64_t*, Outcome* d) {
                                for (uint64_t lane = 0; lane < 32; ++lane)
                                  d[lane].want = row.define(first + lane);
                              }));
    forms.back().pairs_max = 256;
  }
}

}  // namespace

std::vector<Form> warp_forms() {
  Forms forms;
  shuffles(forms);
  partial(forms);
  votes(forms);
  matches(forms);
  reductions(forms);
  elect(forms);
  special_registers(forms);
  return forms;
}

}  // namespace kv::simt::semantics
