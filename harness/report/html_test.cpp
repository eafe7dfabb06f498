#include "harness/report/html.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/report/html_pictures.h"

namespace kv {
namespace {

constexpr const char* kHostile = "</title><script>alert('x')</script>\"\x1b[0m\xff &";

Case two_requests(uint32_t tokens = 11) {
  Case c;
  const RequestId a(0), b(1);
  c.pool.page_slots = 4;
  c.pool.page_count = 2 * tokens / 4 + 4;
  c.shape.query_heads = 2;
  c.mask.window_left = 3;
  c.ops = {op::Admit{.request = a, .prompt_tokens = tokens},
           op::Admit{.request = b, .prompt_tokens = tokens},
           op::Step{.rows = {{.request = a, .append = 6, .queries = 6},
                             {.request = b, .append = 2, .pad_left = 1, .queries = 3}}},
           op::Finish{b}};
  return c;
}

HtmlFinding finding(Case c) {
  HtmlFinding f;
  f.record.c = std::move(c);
  f.record.c.name = kHostile;
  f.record.case_path = f.record.replay = f.record.output = f.explanation = kHostile;
  Verdict& v = f.record.verdict;
  v.outcome = Outcome::kFail;
  v.failure_class = v.message = v.variant = kHostile;
  v.divergence = Divergence{.op_index = 2,
                            .request = 1,
                            .batch_slot = 1,
                            .layer = 0,
                            .head = 1,
                            .query_slot = 2,
                            .dimension = 1,
                            .tensor = "output",
                            .want_bits = "0x3c00",
                            .got_bits = "0x3c01"};
  f.errors.heads = {{.head = 0, .query_slot = 2, .ratios = {0, 0.2}},
                    {.head = 1, .query_slot = 2, .here = true, .ratios = {0.7, 1e9}}};
  return f;
}

std::string report(const HtmlFinding& f) {
  return html_report({.title = kHostile, .version = "1", .plugin = kHostile, .summary = kHostile},
                     std::span(&f, 1));
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Html, EscapesEveryForeignText) {
  const std::string page = report(finding(two_requests()));
  EXPECT_EQ(count(page, "<script"), 0u);
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_EQ(page.find('\xff'), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;alert(&#39;x&#39;)"), std::string::npos);
  EXPECT_EQ(count(page, "</title>\n<style>"), 1u);
  EXPECT_EQ(html_text("\xc3\xa9<\n"), "\xc3\xa9&lt;\n");
  EXPECT_EQ(html_text("\xc3<"), "?&lt;");
}

TEST(Html, IsOnePageThatAsksForNothing) {
  HtmlFinding f = finding(two_requests());
  const std::string page = report(f);
  for (const char* outside : {"http:", "https:", "src=", "url(", "@import", "<link"})
    EXPECT_EQ(count(page, outside), 0u) << outside;
  EXPECT_EQ(count(page, "<svg"), count(page, "</svg>"));
  EXPECT_EQ(count(page, "<figure>"), count(page, "</figure>"));
  EXPECT_EQ(page, report(f));
  f.record.output = "at 0x7ffd0042";
  EXPECT_EQ(page, report(f));  // what was printed differs from run to run
}

TEST(Html, TheMaskIsTheReferencesOwn) {
  const Case c = two_requests();
  const std::optional<Moment> m = moment_of(c, finding(c).record.verdict);
  ASSERT_TRUE(m);
  const Grid g = mask_grid(*m);  // of request 1: one PAD, two tokens
  ASSERT_EQ(g.rows.size(), 3u);
  EXPECT_EQ(g.rows[2].cells, (std::vector<uint8_t>{2, 1, 1}));
  EXPECT_EQ(g.rows[1].cells, (std::vector<uint8_t>{2, 1, 0}));
  EXPECT_TRUE(g.rows[2].marked);
  const Grid first = mask_grid(*moment_of(c, Verdict()));  // no place: the first row stands for it
  ASSERT_EQ(first.rows.size(), 6u);
  EXPECT_EQ(first.rows[5].cells, (std::vector<uint8_t>{3, 3, 1, 1, 1, 1}));
}

// Fails when what a mask tensor hides is drawn as visible, as it was.
TEST(Html, WhatAMaskTensorHidesIsNotDrawnAsVisible) {
  size_t masked = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Case c = two_requests();
    c.mask.encoding = MaskEncoding::kBoolKeep;
    c.data.seed = seed;
    const std::optional<Moment> m = moment_of(c, finding(c).record.verdict);
    ASSERT_TRUE(m);
    const Sequence& sequence = m->timeline->sequence(m->row->request);
    const Grid g = mask_grid(*m);
    for (uint32_t q = 0; q < g.rows.size(); ++q) {
      const auto visible = visible_slots(c, sequence, *m->row, {.query = q, .head = 1});
      for (size_t s = 0; s < g.rows[q].cells.size(); ++s) {
        EXPECT_EQ(g.rows[q].cells[s] == 1, visible[s] != 0) << seed << " " << q << " " << s;
        masked += g.rows[q].cells[s] == 4;
      }
    }
  }
  EXPECT_GT(masked, 5u);
}

TEST(Html, TheKernelsMaskMarksWhatDiffers) {
  const Case c = two_requests();
  const std::optional<Moment> m = moment_of(c, finding(c).record.verdict);
  ASSERT_TRUE(m);
  Grid g = kernel_mask_grid(*m, {.first_query = 1, .copies = {{1, 2, 0}, {0, 0, 1}}});
  ASSERT_EQ(g.rows.size(), 3u);
  EXPECT_EQ(g.rows[0].cells, mask_grid(*m).rows[0].cells);
  EXPECT_EQ(g.rows[1].cells, (std::vector<uint8_t>{5, 7, 0}));
  EXPECT_EQ(g.rows[2].cells, (std::vector<uint8_t>{2, 6, 1}));
  g = kernel_mask_grid(*m, {.first_query = 2, .copies = {{0, 1, 1}}});
  EXPECT_TRUE(g.rows.empty());
}

TEST(Html, PagesHaveTheirOwners) {
  const Case c = two_requests();
  const std::optional<Moment> m = moment_of(c, finding(c).record.verdict);
  ASSERT_TRUE(m);
  const Grid g = ownership_grid(*m);
  ASSERT_EQ(g.rows.size(), 1u);
  const auto& cells = g.rows[0].cells;
  EXPECT_EQ(std::count(cells.begin(), cells.end(), 1), 1);  // of the failing request
  EXPECT_EQ(std::count(cells.begin(), cells.end(), 4), 2);  // of the other
  const BlockTable table = block_table(*m);
  ASSERT_EQ(table.pages.size(), 1u);
  EXPECT_EQ(cells[table.pages[0]], 1);
  EXPECT_EQ(table.marked, 0);
}

TEST(Html, OperationsSayWhoLives) {
  const Grid g = operations_grid(two_requests(), 2);
  ASSERT_EQ(g.rows.size(), 2u);
  EXPECT_EQ(g.rows[0].cells, (std::vector<uint8_t>{2, 1, 3, 1}));
  EXPECT_EQ(g.rows[1].cells, (std::vector<uint8_t>{0, 2, 3, 6}));
}

TEST(Html, HeatSaysWhatIsBeyondTheBound) {
  ErrorMap map;
  const double infinity = std::numeric_limits<double>::infinity();
  map.heads = {{.ratios = {0, 0.05, 0.4, 1, 1.001, infinity}}, {.ratios = {}}};
  const Grid g = error_grid(map, true, 5);
  EXPECT_EQ(g.rows[0].cells, (std::vector<uint8_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(g.rows[1].cells, std::vector<uint8_t>(6, 6));
  EXPECT_EQ(grid_figure(error_grid({}, true, 0)), "");
}

TEST(Html, BitsThatDifferAreMarked) {
  const std::string svg = bits_figure({DType::kF16, "0x3c00", "0xbc01"});
  EXPECT_EQ(count(svg, "sign differs"), 2u);
  EXPECT_EQ(count(svg, "mantissa differs"), 2u);
  EXPECT_EQ(count(svg, "exponent differs"), 0u);
  EXPECT_EQ(bits_figure({DType::kF16, "", "<b>"}), "");
}

TEST(Html, LargeCasesGiveBoundedPages) {
  Case c = two_requests(20000);
  c.ops = {op::Admit{.request = RequestId(0), .prompt_tokens = 20000},
           op::Step{.rows = {{.request = RequestId(0), .append = 20000, .queries = 20000}}}};
  for (uint32_t i = 1; i < 300; ++i)
    c.ops.push_back(op::Admit{.request = RequestId(i), .prompt_tokens = 1});
  HtmlFinding f = finding(c);
  f.record.c.name = "large";  // a hostile one has no timeline
  f.record.verdict.divergence->op_index = 1;
  f.record.verdict.divergence->request = 0;
  f.record.verdict.divergence->query_slot = 15000;
  f.errors.heads.assign(kErrorRowsMax, {.ratios = {}});
  for (size_t r = 0; r < kErrorRowsMax; ++r)
    for (size_t j = 0; j < kErrorColumnsMax; ++j)
      f.errors.heads[r].ratios.push_back(j % 2 == 0 ? 0 : 2);  // nothing to merge
  const std::string page = report(f);
  EXPECT_LT(page.size(), 2u << 20);
  EXPECT_NE(page.find("of 20000 drawn"), std::string::npos);
  const std::vector<HtmlFinding> many(kHtmlFindingsMax + 1, finding(two_requests()));
  EXPECT_EQ(count(html_report({}, many), "<section id="), kHtmlFindingsMax);
}

}  // namespace
}  // namespace kv
