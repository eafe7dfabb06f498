#include "harness/serving/pool_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace kv {
namespace {

constexpr uint64_t kLeft = 80, kTop = 40, kPanel = 120, kGap = 45;

struct Curve {
  const char *name, *color;
  std::vector<uint64_t> values;  // [column]
};

// Columns are equal ranges of steps, so that steps in which nothing ran take their place.
class Picture {
 public:
  Picture(std::span<const PoolMoment> moments, const PictureOptions& options)
      : moments_(moments), last_step_(moments.empty() ? 1 : moments.back().step + 1) {
    svg_ = fmt::format(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
        "font-family='sans-serif' font-size='12'>\n<rect width='{0}' height='{1}' fill='#fff'/>\n",
        kLeft + kPictureColumns + 40, kTop + 3 * (kPanel + kGap));
    text(kLeft, 20, escaped(options.title));
  }

  template <class Value>
  Curve curve(const char* name, const char* color, Value value) const {
    Curve c{name, color, std::vector<uint64_t>(kPictureColumns, 0)};
    for (const PoolMoment& m : moments_) {
      uint64_t& column = c.values[m.step * kPictureColumns / last_step_];
      column = std::max<uint64_t>(column, value(m));
    }
    return c;
  }

  void panel(const char* unit, const std::vector<Curve>& curves) {
    const uint64_t top = kTop + panels_++ * (kPanel + kGap), bottom = top + kPanel;
    uint64_t most = 1;
    for (const Curve& c : curves) most = std::max(most, std::ranges::max(c.values));
    svg_ += fmt::format("<path d='M{0} {1}V{2}H{3}' fill='none' stroke='#888'/>\n", kLeft, top,
                        bottom, kLeft + kPictureColumns);
    text(4, top + 10, fmt::format("{} {}", most, unit));
    text(4, bottom, "0");
    text(kLeft + kPictureColumns - 90, bottom + 14, fmt::format("step {}", last_step_ - 1));
    uint64_t x = kLeft;
    for (const Curve& c : curves) {
      svg_ += fmt::format("<path d='M{} {}", kLeft, bottom - c.values[0] * kPanel / most);
      for (size_t i = 1; i < c.values.size(); ++i) {
        svg_ += fmt::format("L{} {}", kLeft + i, bottom - c.values[i] * kPanel / most);
      }
      svg_ += fmt::format("' fill='none' stroke='{}'/>\n", c.color);
      svg_ += fmt::format("<rect x='{}' y='{}' width='10' height='10' fill='{}'/>\n", x, bottom + 5,
                          c.color);
      text(x + 14, bottom + 14, c.name);
      x += 250;
    }
  }

  std::string take() { return std::move(svg_) + "</svg>\n"; }

 private:
  static std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
      if (c == '&' || c == '<' || c == '>') {
        out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : "&gt;";
      } else {
        out += c < 0x20 || c > 0x7E ? '?' : c;
      }
    }
    return out;
  }
  void text(uint64_t x, uint64_t y, const std::string& words) {
    svg_ += fmt::format("<text x='{}' y='{}'>{}</text>\n", x, y, words);
  }

  std::span<const PoolMoment> moments_;
  uint64_t last_step_, panels_ = 0;
  std::string svg_;
};

}  // namespace

double internal_fragmentation(const PoolMoment& m, uint64_t page_slots) {
  const uint64_t slots = m.table_pages * page_slots;
  return slots == 0 ? 0 : static_cast<double>(slots - m.held_slots) / static_cast<double>(slots);
}

std::string pool_svg(std::span<const PoolMoment> moments, const PictureOptions& options) {
  Picture picture(moments, options);
  picture.panel("pages", {picture.curve("pages held", "#06c", [](auto& m) { return m.held_pages; }),
                          picture.curve("entries of block tables", "#999",
                                        [](auto& m) { return m.table_pages; })});
  picture.panel("pages", {picture.curve("pages returned so far", "#080",
                                        [](auto& m) { return m.returned_pages; })});
  const auto permille = [](double share) { return static_cast<uint64_t>(share * 1000); };
  picture.panel("permille",
                {picture.curve("internal fragmentation of pages", "#06c",
                               [&](auto& m) {
                                 return permille(internal_fragmentation(m, options.page_slots));
                               }),
                 picture.curve("external fragmentation without pages", "#c30", [&](auto& m) {
                   return permille(external_fragmentation(m.contiguous));
                 })});
  return picture.take();
}

}  // namespace kv
