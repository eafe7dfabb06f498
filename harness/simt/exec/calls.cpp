#include "harness/simt/exec/calls.h"

#include <cstdio>
#include <cstring>

#include "harness/simt/exec/access.h"
#include "harness/simt/exec/cold.h"
#include "harness/simt/exec/report.h"

namespace kv::simt {
namespace {

constexpr size_t kTextMax = 4096;
constexpr uint64_t kPrintedMax = uint64_t{1} << 20;

/// Reads memory as a lane sees it; the length read is what is there.
class Reader {
 public:
  Reader(Warp& w, const Ins* i, uint32_t lane) : w_(w), i_(i), lane_(lane) {}

  bool bytes(ptx::Space space, uint64_t address, void* out, uint32_t count) {
    Access a{w_, i_, space};
    a.lane = lane_;
    a.read = true;
    a.bytes = 1;
    for (uint32_t k = 0; k < count; ++k) {
      const auto t = resolve(a, address + k);
      if (!t) return false;
      read_bytes(a, *t, static_cast<uint8_t*>(out) + k);
    }
    return true;
  }
  bool slot_value(uint32_t source, uint64_t* value, uint32_t count) {
    *value = 0;
    return bytes(ptx::Space::kParam, slot<uint64_t>(w_, i_->r[source])[lane_], value, count);
  }
  bool text(uint64_t address, std::string* out) {
    for (char c; out->size() < kTextMax;) {
      if (!bytes(ptx::Space::kGeneric, address + out->size(), &c, 1)) return false;
      if (c == 0) return true;
      out->push_back(c);
    }
    return true;
  }

 private:
  Warp& w_;
  const Ins* i_;
  uint32_t lane_;
};

/// One conversion "%-8.3ld": what stands between '%' and the type letter, and the letter.
struct Conversion {
  std::string flags;
  bool wide = false;  // a 64-bit integer
  char type = 0;
};

Conversion parse_conversion(const std::string& format, size_t* at) {
  Conversion c;
  for (; *at < format.size(); ++*at) {
    const char x = format[*at];
    if (std::strchr("-+ #0123456789.", x)) {
      c.flags.push_back(x);
    } else if (x == 'l' || x == 'j' || x == 'z' || x == 't') {
      c.wide = true;
    } else if (x != 'h') {
      c.type = x;
      ++*at;
      return c;
    }
  }
  return c;
}

/// Formats one argument. The width is bounded so that hostile formats cost little.
std::string convert(const Conversion& c, uint64_t value, const std::string& text) {
  std::string flags = c.flags.size() > 12 ? std::string() : c.flags;
  size_t digits = 0;
  for (char x : flags) digits = x >= '0' && x <= '9' ? digits + 1 : 0;
  if (digits > 3) flags.clear();
  char out[1200];
  const auto print = [&](const std::string& tail, auto argument) {
    std::snprintf(out, sizeof out, ("%" + flags + tail).c_str(), argument);
    return std::string(out);
  };
  switch (c.type) {
    case 'd':
    case 'i':
      return print("lld", c.wide ? (long long)value : (long long)int32_t(value));
    case 'u':
    case 'o':
    case 'x':
    case 'X':
      return print(std::string("ll") + c.type,
                   c.wide ? (unsigned long long)value : (unsigned long long)uint32_t(value));
    case 'c':
      return print("c", int(value & 0xff));
    case 'p':
      return "0x" + hex(value).substr(2);
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      return print(std::string(1, c.type), __builtin_bit_cast(double, value));
    case 's':
      return print("s", text.substr(0, 1000).c_str());
    default:
      return std::string("%") + c.type;
  }
}

/// Arguments lie one after the other, each aligned to its size; integers of 32 bits and all else
/// of 64, as C promotes them.
bool format_lane(Reader& reader, const std::string& format, uint64_t arguments, std::string* out) {
  uint64_t offset = 0;
  for (size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out->push_back(format[at++]);
      continue;
    }
    if (++at < format.size() && format[at] == '%') {
      out->push_back(format[at++]);
      continue;
    }
    const Conversion c = parse_conversion(format, &at);
    if (c.type == 0) return true;
    const bool narrow = !c.wide && std::strchr("diuoxXc", c.type);
    const uint32_t bytes = narrow ? 4 : 8;
    offset = (offset + bytes - 1) / bytes * bytes;
    uint64_t value = 0;
    if (!reader.bytes(ptx::Space::kGeneric, arguments + offset, &value, bytes)) return false;
    offset += bytes;
    std::string text;
    if (c.type == 's' && !reader.text(value, &text)) return false;
    out->append(convert(c, value, text));
  }
  return true;
}

}  // namespace

const Ins* print_text(Warp& w, const Ins* i) {
  for (uint32_t mask = w.exec; mask; mask &= mask - 1) {
    const auto lane = uint32_t(__builtin_ctz(mask));
    Reader reader(w, i, lane);
    uint64_t format = 0, arguments = 0;
    std::string pattern, text;
    if (!reader.slot_value(0, &format, 8) || !reader.slot_value(1, &arguments, 8) ||
        !reader.text(format, &pattern) || !format_lane(reader, pattern, arguments, &text)) {
      return nullptr;
    }
    uint64_t& printed = w.launch->cold->printed;
    if (printed + text.size() <= kPrintedMax) std::fwrite(text.data(), 1, text.size(), stdout);
    printed += text.size();
    if (meta_of(w, i).sources < 3) continue;
    Access a{w, i, ptx::Space::kParam};
    a.lane = lane;
    a.bytes = 4;
    a.write = true;
    const auto result = resolve(a, slot<uint64_t>(w, i->r[2])[lane]);
    if (!result) return nullptr;
    const auto count = uint32_t(text.size());
    write_bytes(a, *result, reinterpret_cast<const uint8_t*>(&count));
    set_undefined_bytes(a, *result, 0);
  }
  return resume_after(w, i);
}

const Ins* assert_failed(Warp& w, const Ins* i) {
  const auto lane = uint32_t(__builtin_ctz(w.exec));
  Reader reader(w, i, lane);
  uint64_t message = 0, file_name = 0, line = 0, function = 0;
  std::string what, where, in;
  const bool known = reader.slot_value(0, &message, 8) && reader.slot_value(1, &file_name, 8) &&
                     reader.slot_value(2, &line, 4) && reader.slot_value(3, &function, 8) &&
                     reader.text(message, &what) && reader.text(file_name, &where) &&
                     reader.text(function, &in);
  if (!known) return nullptr;
  if (fresh(w, i, KV_SIMT_KIND_TRAP)) {
    file(w, i,
         {.kind = KV_SIMT_KIND_TRAP,
          .lane = lane,
          .message = thread_name(w, lane) + ": assertion failed: " + what + " (" + where + ":" +
                     std::to_string(line) + ", " + in + ")"});
  }
  w.stop = Stop::kAssert;
  return nullptr;
}

}  // namespace kv::simt
