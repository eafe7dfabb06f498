// Purpose: one instruction form, what it must do, and how a test tries it.
// Contract: data and pure functions; nothing here knows the executor's inside.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace kv::simt::semantics {

/// What one destination may hold.
struct Outcome {
  uint64_t want = 0;
  std::optional<uint64_t> also = {};               // a second value that the ISA leaves open
  std::function<bool(uint64_t)> accept = nullptr;  // where neither says it, e.g. any NaN
  bool unspecified = false;
};

/// A destination or source. The name of a PTX type ("s32", "bf16x2", "pred"), which decides the
/// register's width and the edge values tried; "shift32" is a u32 that is mostly small, "b16p"
/// two 8-bit floats.
using Operand = std::string_view;

struct Form {
  /// "add.s32": destinations, then sources, follow. With '$' it is the whole text: $0 .. $9, $a ..
  /// $z are destinations, then sources; %a and %o hold the addresses of this thread's row of
  /// sources and of results (8 bytes each, rows of 16 or a multiple), and the row of results may
  /// serve as scratch memory.
  std::string text;
  std::vector<Operand> to, from;
  /// What one thread's destinations hold, a function of its sources.
  std::function<void(const uint64_t* from, Outcome* to)> define = nullptr;
  std::string_view section = "";  // of the PTX ISA 9.0
  uint32_t sm = 80;
  uint64_t pairs_max = 12000;  // combinations of operands tried
  /// Instead of `define`, for what a warp does together: rows of sources and destinations of 32
  /// lanes, and the number of the first row, which is the first lane's global thread number.
  std::function<void(uint64_t first_row, const uint64_t* from, Outcome* to)> define_warp = nullptr;
  uint32_t threads = 128;         // in a block
  std::string declarations = "";  // of the module, before the kernel
};

/// "{$0, $1}": `count` operands from the `first` on. register_list leaves one alone without braces.
std::string vector_list(size_t first, size_t count);
std::string register_list(size_t first, size_t count);
/// What the kernel's third parameter, `.param .align 16 .b8 extra[16]`, holds in every launch.
inline constexpr uint64_t kExtra[2] = {0x8877665544332211, 0x00ffeeddccbbaa99};

/// 64-bit words in a row of `operands` sources or results: even, so that rows are aligned to 16.
constexpr size_t row_words(size_t operands) { return (operands + 1) / 2 * 2; }

/// The text of a module with one kernel `k`, which applies the form to rows of operands. '#' in the
/// form and after `k` becomes the tag, so that modules can be joined.
std::string module_text(const Form& form, const std::string& tag = "");
/// Runs the form on the CPU device and EXPECTs what it defines.
void check_form(const Form& form);

/// Lists by chapter of the ISA.
std::vector<Form> integer_forms();
std::vector<Form> bit_forms();
std::vector<Form> compare_forms();
std::vector<Form> move_forms();
std::vector<Form> float_forms();
std::vector<Form> half_forms();
std::vector<Form> approximate_forms();
std::vector<Form> convert_integer_forms();
std::vector<Form> convert_float_forms();
std::vector<Form> memory_forms();
std::vector<Form> atomic_forms();
std::vector<Form> warp_forms();
std::vector<Form> matrix_forms();
std::vector<Form> async_forms();
std::vector<Form> control_forms();

/// Every form above, by the name of its list.
struct Family {
  const char* name;
  std::vector<Form> (*forms)();
};
const std::vector<Family>& families();

/// Texts of the forms that the device is known not to know (unsupported.txt): they are counted,
/// neither passed nor failed.
const std::set<std::string>& unsupported();

}  // namespace kv::simt::semantics
