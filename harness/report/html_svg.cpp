#include "harness/report/html_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "harness/case/utf8.h"

namespace kv {
namespace {

constexpr size_t kLabelChars = 26, kLabelWidth = 176, kTop = 20;

std::string shortened(const std::string& text) {
  return text.size() <= kLabelChars ? text : text.substr(0, kLabelChars - 3) + "...";
}

struct Box {
  size_t x = 0, y = 0, width = 0, height = 0;
};

std::string rect(const Box& b, const std::string& css, const std::string& tip) {
  return fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"><title>{}</title></rect>\n",
      b.x, b.y, b.width, b.height, html_text(css), html_text(tip));
}

std::string text_at(size_t x, size_t y, const std::string& css, const std::string& text) {
  return fmt::format("<text x=\"{}\" y=\"{}\" class=\"{}\">{}</text>\n", x, y, css,
                     html_text(text));
}

std::string svg(size_t width, size_t height, const std::string& title, const std::string& body) {
  return fmt::format(
      "<div class=\"wide\"><svg role=\"img\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\"><title>{2}</title>\n{3}</svg></div>\n",
      width, height, html_text(title), body);
}

std::string figure(const std::string& title, const std::string& picture, const std::string& note) {
  return fmt::format("<figure><figcaption>{}</figcaption>\n{}{}</figure>\n", html_text(title),
                     picture,
                     note.empty() ? "" : "<p class=\"note\">" + html_text(note) + "</p>\n");
}

std::string column_axis(const Grid& g, size_t columns, size_t cell, size_t bottom) {
  std::string out;
  const uint64_t step = g.rule > 0 && g.rule * cell >= 24 ? g.rule : (cell >= 14 ? 4 : 8);
  for (size_t i = 0; i < columns; ++i) {
    const uint64_t number = g.first_column + i;
    const size_t x = kLabelWidth + i * cell;
    if (number % step == 0) out += text_at(x, kTop - 6, "axis", std::to_string(number));
    if (g.rule > 0 && number % g.rule == 0)
      out += fmt::format("<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" class=\"rule\"/>\n", x,
                         kTop - 3, bottom);
  }
  return out;
}

// Runs of one kind are one rectangle: a large picture stays a small file.
std::string row_cells(const Grid& g, const GridRow& row, size_t y, size_t cell) {
  std::string out;
  for (size_t i = 0; i < row.cells.size();) {
    size_t end = i + 1;
    while (end < row.cells.size() && row.cells[end] == row.cells[i]) ++end;
    const GridKind& kind = g.kinds.at(row.cells[i]);
    const uint64_t first = g.first_column + i, last = g.first_column + end - 1;
    const std::string where =
        first == last ? std::to_string(first) : fmt::format("{}..{}", first, last);
    out += rect({kLabelWidth + i * cell, y, (end - i) * cell - 1, cell - 1}, kind.css,
                fmt::format("{}, {} {}: {}", row.label, g.columns, where, kind.name));
    i = end;
  }
  return out;
}

std::string legend(const Grid& g) {
  std::set<uint8_t> used;
  for (const GridRow& row : g.rows) used.insert(row.cells.begin(), row.cells.end());
  std::string out = "<p class=\"legend\">";
  for (const uint8_t kind : used)
    out += fmt::format(
        "<svg width=\"12\" height=\"12\"><rect width=\"12\" height=\"12\" class=\"{}\"/></svg> {} ",
        html_text(g.kinds.at(kind).css), html_text(g.kinds.at(kind).name));
  return out + fmt::format("<span>columns: {}</span></p>\n", html_text(g.columns));
}

std::optional<uint32_t> parsed(const std::string& bits) {
  uint32_t value = 0;
  if (bits.size() < 3 || bits[0] != '0' || bits[1] != 'x') return std::nullopt;
  const char* end = bits.data() + bits.size();
  const auto [stop, status] = std::from_chars(bits.data() + 2, end, value, 16);
  if (status != std::errc() || stop != end) return std::nullopt;
  return value;
}

uint32_t mantissa_bits(DType type) {
  switch (type) {
    case DType::kF32:
      return 23;
    case DType::kF16:
      return 10;
    case DType::kBf16:
      return 7;
    case DType::kE4m3:
      return 3;
    case DType::kE5m2:
      return 2;
    case DType::kI8:
      return 7;
  }
  return 0;
}

}  // namespace

// Text of the code under test may be anything: one bad byte costs all that is not ASCII.
std::string html_text(std::string_view text) {
  const bool utf8 = printable_utf8(text);
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool control = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
    if (control || (byte >= 0x80 && !utf8))
      out += '?';
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += c;
  }
  return out;
}

std::string grid_figure(const Grid& g) {
  if (g.rows.empty()) return "";
  size_t columns = 0;
  for (const GridRow& row : g.rows) columns = std::max(columns, row.cells.size());
  const size_t cell = columns > 64 ? 8 : columns > 24 ? 12 : 16;
  const size_t bottom = kTop + g.rows.size() * cell;
  const size_t width = kLabelWidth + columns * cell + 24;
  std::string body;
  for (size_t r = 0; r < g.rows.size(); ++r) {
    const GridRow& row = g.rows[r];
    const size_t y = kTop + r * cell;
    body += text_at(kLabelWidth - 6, y + cell / 2 + 4 - (cell < 12 ? 1 : 0),
                    row.marked ? (cell < 12 ? "tiny label here" : "label here")
                               : (cell < 12 ? "tiny label" : "label"),
                    shortened(row.label));
    body += row_cells(g, row, y, cell);
    if (row.marked)
      body += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"mark\"/>\n",
                          kLabelWidth - 1, y - 1, columns * cell + 1, cell + 1);
  }
  body += column_axis(g, columns, cell, bottom);
  if (g.marked_column >= static_cast<int64_t>(g.first_column) &&
      static_cast<size_t>(g.marked_column) < g.first_column + columns)
    body += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"mark\"/>\n",
        kLabelWidth + (static_cast<size_t>(g.marked_column) - g.first_column) * cell - 1, kTop - 1,
        cell + 1, bottom - kTop + 1);
  return figure(g.title, svg(width, bottom + 6, g.title, body) + legend(g), g.note);
}

std::string block_table_figure(const BlockTable& t) {
  constexpr size_t kColumns = 12, kWidth = 76, kHeight = 40;
  if (t.pages.empty()) return "";
  std::string body;
  for (size_t i = 0; i < t.pages.size(); ++i) {
    const size_t x = i % kColumns * kWidth, y = i / kColumns * kHeight;
    const uint64_t first = uint64_t{i} * t.page_slots, last = first + t.page_slots - 1;
    const bool marked = static_cast<int64_t>(i) == t.marked;
    body += rect({x + 1, y + 1, kWidth - 6, kHeight - 6}, marked ? "page here" : "page",
                 fmt::format("slots {} to {} lie in page {}", first, last, t.pages[i]));
    body += text_at(x + 6, y + 14, "axis", fmt::format("{}-{}", first, last));
    body += text_at(x + 6, y + 29, "number", fmt::format("page {}", t.pages[i]));
  }
  const size_t rows = (t.pages.size() + kColumns - 1) / kColumns;
  const std::string title = "Block table of the request: slots and the page that holds them";
  return figure(title, svg(kColumns * kWidth, rows * kHeight + 2, title, body),
                t.left_out == 0 ? "" : fmt::format("{} more pages not drawn", t.left_out));
}

std::string bits_figure(const Bits& b) {
  constexpr size_t kCell = 20, kLeft = 48;
  const auto want = parsed(b.want), got = parsed(b.got);
  if (!got) return "";
  const uint32_t width = 8 * dtype_bytes(b.type), mantissa = mantissa_bits(b.type);
  std::string body;
  const auto line = [&](const char* label, uint32_t value, size_t y) {
    body += text_at(0, y + 15, "number", label);
    for (uint32_t i = 0; i < width; ++i) {
      const uint32_t bit = width - 1 - i;
      const bool set = (value >> bit & 1) != 0;
      const bool differs = want && ((*want ^ *got) >> bit & 1) != 0;
      const char* part = bit == width - 1 ? "sign" : bit >= mantissa ? "exponent" : "mantissa";
      const Box box{kLeft + i * kCell, y, kCell - 2, kCell - 2};
      body += rect(box, std::string(part) + (differs ? " differs" : ""),
                   fmt::format("{} bit {}{}", part, bit, differs ? ", differs" : ""));
      body += text_at(box.x + 6, y + 14, "number", set ? "1" : "0");
    }
  };
  if (want) line("want", *want, 2);
  line("got", *got, 26);
  const std::string title =
      fmt::format("Bits of the element, {}: sign, exponent, mantissa", dtype_name(b.type));
  return figure(title, svg(kLeft + width * kCell, 50, title, body), "");
}

}  // namespace kv
