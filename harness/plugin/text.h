// Purpose: text from foreign code, made fit to print.
// Contract: the result is at most `bytes_max` bytes of printable ASCII, tabs and line ends; every
// other byte becomes '?', and a cut is marked with "...".
// Example: std::string why = printable(error.text, strnlen(error.text, sizeof error.text));
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kv {

std::string printable(std::string_view foreign, size_t bytes_max = 2000);

/// The text of a fixed-size C array that may lack its terminating zero.
template <size_t size>
std::string printable_array(const char (&foreign)[size]) {
  size_t bytes = 0;
  while (bytes < size && foreign[bytes] != '\0') ++bytes;
  return printable({foreign, bytes}, size);
}

}  // namespace kv
