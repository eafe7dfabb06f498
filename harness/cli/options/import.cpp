// kverify import
#include <algorithm>

#include "harness/case/names.h"
#include "harness/cli/options/offers.h"

namespace kv::cli {
namespace {

constexpr const char* kNames = R"(
Tensors, and the names that engines give them:
  q            query                  [batch, rows, heads, dim] or [tokens, heads, dim]
  k            key, key_cache, k_cache        [batch, slots, KV heads, dim], or with a
  v            value, value_cache, v_cache      block table [pages, page, KV heads, dim]
  k_scale      key_scale, k_scales, key_scales    of codes: one number, or [KV heads]
  v_scale      value_scale, v_scales, value_scales
  block_table  block_tables, page_table       I32 or I64 [batch, pages]
  kv_lengths   seq_lens, context_lens, cache_seqlens  [batch]
  q_lengths    query_lens                     [batch], or their sums
  cu_q         cu_seqlens_q, qo_indptr, query_start_loc  [batch + 1]
q, k and v are F16, BF16 or F32; k and v also codes of 8 bits: F8_E4M3, F8_E5M2, I8, or bytes
(U8, V1) with --kv-dtype. Codes become what the case appends, times their scale; that this gives
the same codes again is checked. --prefix 'layers.{}.' takes all layers, in ascending order of their
numbers, each with its q, k, v and scales; what else is there may be common to all.
A request's query rows are those of its last slots. Settings below may stand in the dump: as
safetensors metadata, or as tensors of one number.)";

template <class E>
void add_named(CLI::App& command, const char* name, std::optional<E>& value, const char* what) {
  const auto names = name_table<E>();
  command
      .add_option_function<std::string>(
          name,
          [&value, names](const std::string& text) {
            value = static_cast<E>(std::find(names.begin(), names.end(), text) - names.begin());
          },
          what)
      ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())));
}

}  // namespace

void offer_import(CLI::App& app, Chosen& chosen) {
  auto [command, o] = subcommand<ImportOptions>(
      {app, "import", "turn a recorded attention call (.safetensors, .npz) into a case"}, chosen,
      [](const ImportOptions& o) -> Result<ExitCode> {
        KV_RETURN_IF_ERROR(keep_apart(o.dump_path, o.case_path));
        KV_RETURN_IF_ERROR(keep_apart(o.dump_path, o.json_path.value_or("")));
        return import(o);
      });
  command->footer(kNames);
  command->add_option("dump", o->dump_path, "file of q, k, v and lengths")->required();
  command->add_option("--out", o->case_path, "case file to write; its tensors go beside it")
      ->required()
      ->check(named());
  command->add_option("--prefix", o->prefix,
                      "of the tensors' names, e.g. 'layers.3.', or 'layers.{}.' for every layer");
  DumpSettings& s = o->settings;
  command->add_option("--scale", s.scale, "factor of q.k (default: 1/sqrt(head dimension))")
      ->check(number(-1e6, 1e6));
  command->add_option("--softcap", s.softcap, "of the scores (default: none)")
      ->check(number(0, 1e6));
  add_named(*command, "--causal", s.causal, "mask (default: bottom_right)");
  command
      ->add_option("--window-left", s.window_left, "keys to the left, itself not counted; -1: all")
      ->check(CLI::TypeValidator<int64_t>());
  command->add_option("--window-right", s.window_right, "likewise to the right")
      ->check(CLI::TypeValidator<int64_t>());
  command
      ->add_option("--page-size", s.page_size,
                   "slots of a page of the case (default: the dump's, 16 without pages)")
      ->check(whole(1, 256));
  add_named(*command, "--kv-dtype", s.kv_dtype, "of k and v that are bytes: e4m3 or e5m2");
  add_named(*command, "--layout", s.layout, "of k and v: slot_head (default) or head_slot");
  add_json(*command, o->json_path);
}

}  // namespace kv::cli
