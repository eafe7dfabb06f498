// `kverify exec`: a user's own CUDA program under all checks of the CPU device.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>

#include "harness/case/text_file.h"
#include "harness/certify/run_folder.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"
#include "harness/core/json_fields.h"
#include "harness/judge/suppressions.h"
#include "harness/plugin/elf.h"
#include "harness/plugin/loader.h"

extern char** environ;

namespace kv::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kReportBytesMax = uint64_t{256} << 20;
constexpr int kCannotStart = 127;

/// As the shell finds it.
Result<std::string> find_program(const std::string& name) {
  if (name.find('/') != name.npos) {
    if (access(name.c_str(), X_OK) == 0) return name;
    return bad_input("'" + name + "' cannot be executed: " + std::strerror(errno));
  }
  const char* const path = std::getenv("PATH");
  std::string_view folders = path ? path : "/usr/bin:/bin";
  while (!folders.empty()) {
    const size_t colon = folders.find(':');
    const std::string candidate = std::string(folders.substr(0, colon)) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    folders = colon == folders.npos ? "" : folders.substr(colon + 1);
  }
  return bad_input("there is no program '" + name + "' in PATH; one in this folder is ./" + name);
}

/// The CPU device as the runtime library `soname`, which lies beside that of CUDA 13.
Result<std::string> find_device(const std::string& soname) {
  const std::vector<std::string> candidates = runtime_candidates(DeviceKind::kCpu);
  for (const std::string& candidate : candidates) {
    std::filesystem::path path = candidate;
    if (!soname.empty() && path.filename().string().starts_with("libcudart.so"))
      path.replace_filename(soname);
    std::error_code error;
    if (std::filesystem::exists(path, error)) return std::filesystem::absolute(path).string();
  }
  return environment_error("the CPU device was not found at " + candidates.front() +
                           ": build the target 'cudart_simt', or set KVERIFY_SIMT to its path");
}

/// The environment of the program: kverify's own, and what the CPU device reads.
std::vector<std::string> environment_for(const ExecOptions& options, const std::string& device,
                                         const std::string& report) {
  std::vector<std::string> list;
  std::string preload = device;
  for (char** variable = environ; *variable; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("LD_PRELOAD=")) {
      preload += ":" + std::string(text.substr(std::strlen("LD_PRELOAD=")));
    } else if (!text.starts_with("KV_SIMT_")) {
      list.emplace_back(text);
    }
  }
  const auto set = [&](const char* name, const std::string& value) {
    if (!value.empty()) list.push_back(std::string(name) + "=" + value);
  };
  const auto absolute = [](const std::string& path) {
    return path.empty() ? path : std::filesystem::absolute(path).string();
  };
  set("LD_PRELOAD", preload);
  set("KV_SIMT_REPORT_JSON", report);
  set("KV_SIMT_CHECKS", options.checks);
  set("KV_SIMT_SEED", std::to_string(options.seed));
  set("KV_SIMT_MODEL", std::to_string(options.model_sm));
  set("KV_SIMT_PROFILE", absolute(options.profile_path));
  set("KV_SIMT_LCOV", absolute(options.lcov_path));
  return list;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

/// Its status as a shell gives it.
Result<int> run(const std::string& program, std::vector<std::string> arguments,
                std::vector<std::string> environment) {
  pid_t pid = -1;
  errno = posix_spawn(&pid, program.c_str(), nullptr, nullptr, pointers(arguments).data(),
                      pointers(environment).data());
  if (errno != 0) return bad_input("cannot run '" + program + "': " + std::strerror(errno));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return environment_error(std::strerror(errno));
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// What the processes of the program left, oldest name first.
Result<std::vector<Json>> read_reports(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    paths.push_back(entry.path().string());
  }
  if (error) return environment_error(folder + ": cannot be listed: " + error.message());
  std::sort(paths.begin(), paths.end());
  std::vector<Json> reports;
  for (const std::string& path : paths) {
    KV_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kReportBytesMax));
    Json report = Json::parse(text, nullptr, false);
    const bool whole =
        report.is_object() && report.contains("findings") && report["findings"].is_array();
    if (whole && number_field(report, "launches") + report["findings"].size() > 0) {
      reports.push_back(std::move(report));
    }
  }
  return reports;
}

struct Findings {
  Json active = Json::array();
  std::map<const Suppression*, uint64_t> suppressed;
  uint64_t launches = 0, not_kept = 0;
  std::string text;
};

Findings sift(const std::vector<Json>& reports, std::span<const Suppression> suppressions) {
  Findings all;
  for (const Json& report : reports) {
    all.launches += number_field(report, "launches");
    all.not_kept += number_field(report, "findings_not_kept");
    for (const Json& f : report["findings"]) {
      const std::vector<SourcePlace> places = {
          {text_field(f, "source_file"), number_field(f, "source_line")},
          {text_field(f, "inlined_at_file"), number_field(f, "inlined_at_line")}};
      if (const auto* s = find_suppression(suppressions, text_field(f, "kind"), places)) {
        ++all.suppressed[s];
        continue;
      }
      all.text += text_field(f, "text");
      all.active.push_back(f);
    }
  }
  return all;
}

std::string plural(uint64_t count, const char* noun, const char* ending = "s") {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : ending);
}

std::string summary(const Findings& findings, const std::vector<Suppression>& suppressions,
                    const ExecOptions& options, int status) {
  std::string text =
      fmt::format("kverify: {} in {} on the CPU device (sm_{}, schedule seed {})",
                  plural(findings.active.size(), "finding"),
                  plural(findings.launches, "launch", "es"), options.model_sm, options.seed);
  if (findings.not_kept) text += fmt::format("; {} more not kept", findings.not_kept);
  text += fmt::format("; the program ended with status {}\n", status);
  for (const Suppression& s : suppressions) {
    const auto count = findings.suppressed.find(&s);
    text += fmt::format("  suppressed {} at {}:{}: {} ({})\n", s.kind, s.place.file, s.place.line,
                        plural(count == findings.suppressed.end() ? 0 : count->second, "time"),
                        s.reason);
  }
  return text;
}

/// Nothing of the device was used: say what may be the matter.
Result<ExitCode> nothing_ran(const std::string& program, int status) {
  if (status == kCannotStart) {
    return unsupported("'" + program +
                       "' did not start. If the line above names an undefined cuda function, the "
                       "CPU device does not have it: leave out the code that calls it");
  }
  std::fprintf(stderr,
               "kverify: '%s' launched nothing, so nothing was checked; it ended with status %d\n",
               program.c_str(), status);
  return status == 0 ? ExitCode::kVacuous : static_cast<ExitCode>(status);
}

}  // namespace

Result<ExitCode> exec(const ExecOptions& options) {
  const Output output(options.json_path);
  std::vector<Suppression> suppressions;
  if (!options.suppressions_path.empty()) {
    KV_ASSIGN_OR_RETURN(suppressions, read_suppressions(options.suppressions_path));
  }
  KV_ASSIGN_OR_RETURN(const std::string program, find_program(options.command.front()));
  std::string runtime;
  // A script, or another kind of machine's program: the system will say.
  if (const auto facts = inspect_elf(program); facts.ok()) {
    KV_ASSIGN_OR_RETURN(runtime, runtime_of_program(program, *facts));
  }
  KV_ASSIGN_OR_RETURN(const std::string device, find_device(runtime));
  KV_ASSIGN_OR_RETURN(const RunFolder folder, RunFolder::create());
  std::fflush(stdout);
  KV_ASSIGN_OR_RETURN(
      const int status,
      run(program, options.command, environment_for(options, device, folder.path() + "/report")));
  KV_ASSIGN_OR_RETURN(const std::vector<Json> reports, read_reports(folder.path()));
  if (reports.empty()) return nothing_ran(program, status);
  const Findings findings = sift(reports, suppressions);
  std::fprintf(stderr, "%s%s", findings.text.c_str(),
               summary(findings, suppressions, options, status).c_str());
  Json json;
  json["kverify"] = kVersion;
  json["command"] = "exec";
  json["launches"] = findings.launches;
  json["findings"] = findings.active;
  json["findings_not_kept"] = findings.not_kept;
  uint64_t suppressed = 0;
  for (const auto& [suppression, count] : findings.suppressed) suppressed += count;
  json["suppressed"] = suppressed;
  json["program_status"] = status;
  KV_RETURN_IF_ERROR(output.finish(json));
  const bool failed = !findings.active.empty() || findings.not_kept != 0;
  return failed ? ExitCode::kFailed : static_cast<ExitCode>(status);
}

}  // namespace kv::cli
