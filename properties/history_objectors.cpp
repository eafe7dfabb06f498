// history_objectors PLUGIN HISTORIES [SEED]: every check that objects to an engine, for the matrix
// of which check kills which planted bug. A campaign of random histories and their twins ends with
// its first finding; the check that spoke is then passed over, and the campaign runs again, until
// nobody objects any more. Prints a line for each, as it speaks: "engine:lengths 3", and the number
// of the history; "end" when nobody does, or when the engine's state has become unreadable for what
// was passed over. Exits with 0, or 2 for bad usage.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstring>

#include "harness/certify/histories.h"
#include "harness/certify/history_bench.h"
#include "harness/simt/control/finding_names.h"

namespace kv::props {
namespace {

struct Objection {
  CheckClass check = CheckClass::kSnapshot;
  uint64_t history = 0;
};

struct Campaign {
  uint64_t histories = 0, seed = 1;
};

/// The first finding of a check that is heard.
Result<std::optional<Objection>> first_objection(HistoryBench& bench, const OfferSet& offered,
                                                 Campaign campaign, uint32_t unheard) {
  for (uint64_t i = 0; i < campaign.histories; ++i) {
    const Case c = draw_engine_case(campaign.seed, i, offered);
    const auto ran = bench.run(c, {.value_steps = kCampaignValueSteps, .unheard = unheard});
    if (!ran.ok() && ran.error().kind != ErrorKind::kUnsupported) return ran.error();
    if (ran.ok() && ran->finding && ran->finding->check != CheckClass::kUnsupported)
      return std::optional(Objection{ran->finding->check, i});
  }
  return std::optional<Objection>{};
}

Result<void> tell_all(const std::string& plugin, Campaign campaign) {
  BenchOptions options;
  options.plugin_path = plugin;
  options.executable = KV_BUILD_DIR "/bin/kverify";
  HistoryBench bench(options);
  const OfferSet offered = bench.offers();
  uint32_t unheard = 0;
  for (;;) {
    KV_ASSIGN_OR_RETURN(const auto found, first_objection(bench, offered, campaign, unheard));
    if (!found || (found->check == CheckClass::kSnapshot && unheard != 0)) break;
    unheard |= uint32_t{1} << static_cast<uint32_t>(found->check);
    fmt::print("engine:{} {}\n", dashed(std::string(check_name(found->check))), found->history);
    std::fflush(stdout);
    bench.refresh();
  }
  fmt::print("end\n");
  return {};
}

Result<uint64_t> number(const char* text) {
  uint64_t value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, status] = std::from_chars(text, end, value);
  if (status == std::errc() && stop == end && value > 0) return value;
  return bad_input(fmt::format("expected a number above 0, got '{}'", text));
}

Result<void> run(int argc, char** argv) {
  if (argc < 3 || argc > 4) return bad_input("usage: history_objectors PLUGIN HISTORIES [SEED]");
  Campaign campaign;
  KV_ASSIGN_OR_RETURN(campaign.histories, number(argv[2]));
  if (argc > 3) {
    KV_ASSIGN_OR_RETURN(campaign.seed, number(argv[3]));
  }
  return tell_all(argv[1], campaign);
}

}  // namespace
}  // namespace kv::props

int main(int argc, char** argv) {
  const auto told = kv::props::run(argc, argv);
  if (told.ok()) return 0;
  fmt::print(stderr, "history_objectors: {}\n", told.error().message);
  return 2;
}
