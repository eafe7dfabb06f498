// Purpose: the pictures of the HTML report, from plain data: a grid of coloured cells, a block
// table, the bits of two numbers.
// Contract: pure; integer coordinates, so the same bytes everywhere. All texts are escaped here,
// and nothing else writes markup around foreign text. Colours are CSS classes (html_style.cpp):
// light and dark are the page's business. Neighbours of one kind are one rectangle. The caller
// bounds what is drawn: html_pictures.h.
// Example: grid_svg({.title = "mask", .kinds = {{"off", "hidden"}}, .rows = {{"q0", {0, 0}}}})
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/formats.h"

namespace kv {

/// `text` inside an element or a quoted attribute. What is no UTF-8 or a control character is '?'.
std::string html_text(std::string_view text);

/// What a cell can be: its CSS class and its word in the legend.
struct GridKind {
  std::string css, name;
};
struct GridRow {
  std::string label;
  std::vector<uint8_t> cells;  // indices into Grid::kinds
  bool marked = false;
};
struct Grid {
  std::string title, columns;  // what the picture is; what a column is
  uint64_t first_column = 0;   // number of the first
  int64_t marked_column = -1;  // by its number
  uint32_t rule = 0;           // a line before each column whose number is a multiple; 0: none
  std::vector<GridKind> kinds;
  std::vector<GridRow> rows;
  std::string note;  // what was left out
};

/// A figure with its legend; "" for a grid without rows.
std::string grid_figure(const Grid& grid);

/// Boxes of pages in the order of the sequence. `left_out`: pages after those.
struct BlockTable {
  std::vector<uint32_t> pages;
  uint32_t page_slots = 1;
  int64_t marked = -1;  // index of the page of the query
  uint64_t left_out = 0;
};
std::string block_table_figure(const BlockTable& table);

/// Sign, exponent and mantissa of the two, differing bits marked; bits as "0x3c00".
struct Bits {
  DType type = DType::kF16;
  std::string want, got;
};
std::string bits_figure(const Bits& bits);

}  // namespace kv
