// `kverify import`: a recorded attention call becomes a case with a side-car.
#include "harness/dump/import.h"

#include <fmt/format.h>

#include <filesystem>

#include "harness/case/data.h"
#include "harness/case/json.h"
#include "harness/case/side_car.h"
#include "harness/case/text_file.h"
#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/version.h"

namespace kv::cli {
namespace {

namespace fs = std::filesystem;

std::string list_text(const char* title, const std::vector<std::string>& items) {
  return items.empty() ? "" : fmt::format("{}{}\n", title, fmt::join(items, ", "));
}

std::string told(const ImportOptions& options, const Imported& made, const std::string& side_car) {
  uint64_t slots = 0, queries = 0, requests = 0;
  for (const Op& op : made.c.ops) {
    requests += std::holds_alternative<op::Admit>(op);
    const auto* step = std::get_if<op::Step>(&op);
    for (const op::StepRow& row : step == nullptr ? std::vector<op::StepRow>() : step->rows) {
      slots += row.append;
      queries += row.queries;
    }
  }
  std::string text = fmt::format(
      "{}: {} requests, {} slots in {} pages, {} query rows, {} layers; tensors in {}\n",
      options.case_path, requests, slots, made.c.pool.page_count, queries, made.c.shape.layers,
      side_car);
  text += list_text("not said, so assumed: ", made.assumed);
  text += list_text("not used: ", made.not_used);
  if (made.shared_pages > 0) {
    text += fmt::format("{} pages that another request's table names too became copies\n",
                        made.shared_pages);
  }
  return text + fmt::format("run it with: kverify replay {}\n", options.case_path);
}

}  // namespace

Result<ExitCode> import(const ImportOptions& options) {
  const Output output(options.json_path);
  KV_ASSIGN_OR_RETURN(const TensorFile file, read_dump(options.dump_path));
  KV_ASSIGN_OR_RETURN(Imported made, import_dump(file, {.name = options.dump_path,
                                                        .prefix = options.prefix,
                                                        .settings = options.settings}));
  const fs::path side_car = fs::path(options.case_path).replace_extension(".safetensors");
  std::error_code missing;
  if (fs::equivalent(side_car, options.dump_path, missing)) {
    return bad_input(side_car.string() +
                     ": expected another name for the case's tensors than the "
                     "dump's: choose another with --out");
  }
  if (fs::exists(side_car, missing) && !fs::exists(options.case_path, missing)) {
    return bad_input(side_car.string() +
                     ": expected no such file, or the case that it belongs to beside it, got a "
                     "file of its own: choose another with --out");
  }
  // Under another name until it is known to be a case: what is there stays as it is.
  const fs::path fresh = side_car.string() + ".new";
  KV_RETURN_IF_ERROR(write_text_file(fresh, made.side_car));
  made.c.data.tensors_file = fresh.filename();
  const Result<void> attached = attach_side_car(made.c, fresh.parent_path().string());
  if (!attached.ok()) {
    fs::remove(fresh, missing);
    return bad_input(fmt::format("{}: as a case: {}", options.dump_path, attached.error().message));
  }
  made.c.data.digest = input_digest(made.c);
  std::error_code error;
  fs::rename(fresh, side_car, error);
  if (error) return environment_error(side_car.string() + ": " + error.message());
  made.c.data.tensors_file = side_car.filename();
  KV_RETURN_IF_ERROR(save_case(options.case_path, made.c));
  output.say(told(options, made, side_car));
  KV_RETURN_IF_ERROR(output.finish({{"kverify", kVersion},
                                    {"command", "import"},
                                    {"case", options.case_path},
                                    {"tensors", side_car.string()},
                                    {"assumed", made.assumed},
                                    {"not_used", made.not_used},
                                    {"shared_pages", made.shared_pages}}));
  return ExitCode::kPass;
}

}  // namespace kv::cli
