// Hypotheses about where things are read: pages, heads, layers, rows.
#include <fmt/format.h>

#include <algorithm>

#include "harness/explain/catalogue.h"

namespace kv {
namespace {

constexpr size_t kPagesMax = 6;  // pages of a request of which every pair is suspected

// Every slot of page index `page` is read from page index `from` of the same request.
void read_page(const Scene& scene, Reading& r, size_t page, size_t from) {
  for (size_t i = 0; i < scene.page_slots(); ++i) {
    const size_t slot = page * scene.page_slots() + i;
    if (slot < r.sources.size()) r.sources[slot].slot = from * scene.page_slots() + i;
  }
}

void page_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  out.push_back({"partial-page-as-before",
                 "the last page, when it is not full, is read as the page before it",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   const uint32_t length = s.step().rows[at.row].kv_length;
                   const size_t last = length / s.page_slots();
                   if (length % s.page_slots() != 0 && last > 0) read_page(s, r, last, last - 1);
                 }});
  out.push_back({"pages-reversed", "the pages of a request are read in reverse order",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   const size_t pages = s.sequence(at.row).pages.size();
                   for (size_t p = 0; p < pages; ++p) read_page(s, r, p, pages - 1 - p);
                 }});
  out.push_back({"page-zero-always", "every page is read as the first one",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   for (size_t p = 0; p < s.sequence(at.row).pages.size(); ++p) {
                     read_page(s, r, p, 0);
                   }
                 }});
  for (const int64_t by : {1, -1}) {
    out.push_back(
        {by > 0 ? "slot-plus-one" : "slot-minus-one",
         std::string("every key and value is read one slot too ") + (by > 0 ? "late" : "early"),
         [by](const Scene&, const RowAt&, Reading& r) {
           for (SlotSource& s : r.sources) {
             s.slot = static_cast<uint64_t>(static_cast<int64_t>(s.slot) + by);
           }
         }});
  }
  size_t most = 0;
  for (uint32_t r = 0; r < scene.step().rows.size(); ++r) {
    most = std::max(most, scene.sequence(r).pages.size());
  }
  for (size_t p = 0; p < std::min(most, kPagesMax); ++p) {
    for (size_t from = 0; from < std::min(most, kPagesMax); ++from) {
      if (p == from) continue;
      if (p < from) {
        out.push_back({fmt::format("pages-exchanged:{}:{}", p, from),
                       fmt::format("pages {} and {} of a request are exchanged", p, from),
                       [p, from](const Scene& s, const RowAt& at, Reading& r) {
                         if (from >= s.sequence(at.row).pages.size()) return;
                         read_page(s, r, p, from);
                         read_page(s, r, from, p);
                       }});
      }
      out.push_back({"page-as:" + std::to_string(p) + ":" + std::to_string(from),
                     "page " + std::to_string(p) + " of a request is read as its page " +
                         std::to_string(from),
                     [p, from](const Scene& s, const RowAt& at, Reading& r) {
                       const size_t pages = s.sequence(at.row).pages.size();
                       if (p < pages && from < pages) read_page(s, r, p, from);
                     }});
    }
  }
}

Hypothesis kv_head(const char* name, const char* sentence,
                   std::function<uint32_t(const Shape&, uint32_t)> map) {
  return {name, sentence, [map](const Scene& s, const RowAt& at, Reading& r) {
            r.key_head = r.value_head = map(s.c().shape, at.head) % s.c().shape.kv_heads;
          }};
}

void head_hypotheses(std::vector<Hypothesis>& out) {
  out.push_back(kv_head("heads-interleaved",
                        "query heads are dealt to KV heads in turn, not in blocks",
                        [](const Shape& s, uint32_t h) { return h % s.kv_heads; }));
  out.push_back(kv_head("head-zero-always", "every query head reads KV head 0",
                        [](const Shape&, uint32_t) { return 0u; }));
  out.push_back(
      kv_head("head-plus-one", "every query head reads the next KV head",
              [](const Shape& s, uint32_t h) { return h / (s.query_heads / s.kv_heads) + 1; }));
  out.push_back(kv_head("heads-reversed", "KV heads are read in reverse order",
                        [](const Shape& s, uint32_t h) {
                          return s.kv_heads - 1 - h / (s.query_heads / s.kv_heads);
                        }));
  out.push_back({"value-head-zero", "V is always read from KV head 0",
                 [](const Scene&, const RowAt&, Reading& r) { r.value_head = 0; }});
  out.push_back({"query-head-reversed", "query heads are read in reverse order",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   r.query.head = s.c().shape.query_heads - 1 - at.head;
                 }});
}

// The block table as one list of pages, of which a row is found by the request's own length and not
// by the table's stride. Its unused entries are anything.
void read_table_by_length(const Scene& s, const RowAt& at, uint64_t stride, Reading& r) {
  size_t columns = 0;
  const auto rows = static_cast<uint32_t>(s.step().rows.size());
  for (uint32_t row = 0; row < rows; ++row) {
    columns = std::max(columns, s.sequence(row).pages.size() + 1);
  }
  for (size_t slot = 0; slot < r.sources.size(); ++slot) {
    const uint64_t entry = at.row * stride + slot / s.page_slots();
    const auto row = static_cast<uint32_t>(entry / columns);
    const uint64_t page = entry % columns;
    if (row < rows && page < s.sequence(row).pages.size()) {
      r.sources[slot] = {row, page * s.page_slots() + slot % s.page_slots()};
    } else if (r.copies[slot] > 0) {
      r.fate = RowFate::kAnything;
    }
  }
}

void table_hypotheses(std::vector<Hypothesis>& out) {
  out.push_back({"table-row-by-pages",
                 "the block table's row is found by the number of pages of the request, not by the "
                 "table's stride",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   read_table_by_length(s, at, s.sequence(at.row).pages.size(), r);
                 }});
  out.push_back({"table-row-by-length",
                 "the block table's row is found by the length of the request in whole pages and "
                 "one, not by the table's stride",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   const uint32_t length = s.step().rows[at.row].kv_length;
                   read_table_by_length(s, at, length / s.page_slots() + 1, r);
                 }});
}

// Queries of a batch that are found without the offset of their request.
void query_offset_hypotheses(std::vector<Hypothesis>& out) {
  out.push_back({"query-of-first-request",
                 "query rows are counted from the start of the batch, not from their request's",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   r.query = s.row_of_token(at.query, at);
                 }});
  out.push_back({"query-zero-always", "every row is computed with the first query of its request",
                 [](const Scene&, const RowAt&, Reading& r) { r.query.query = 0; }});
}

// The row whose result stands at `at`, under a change of the order of rows.
void row_hypotheses(std::vector<Hypothesis>& out) {
  for (const int by : {1, -1}) {
    out.push_back({by > 0 ? "query-plus-one" : "query-minus-one",
                   std::string("every row is computed with the query of the ") +
                       (by > 0 ? "next" : "previous") + " row of its request",
                   [by](const Scene& s, const RowAt& at, Reading& r) {
                     const int64_t q = int64_t{at.query} + by;
                     if (q >= 0 && q < s.step().rows[at.row].queries) {
                       r.query.query = static_cast<uint32_t>(q);
                     }
                   }});
    out.push_back({by > 0 ? "request-plus-one" : "request-minus-one",
                   std::string("every request reads the block table of the ") +
                       (by > 0 ? "next" : "previous") + " request in the batch",
                   [by](const Scene& s, const RowAt& at, Reading& r) {
                     const auto rows = static_cast<int64_t>(s.step().rows.size());
                     const auto other = static_cast<uint32_t>((at.row + rows + by) % rows);
                     for (SlotSource& source : r.sources) source.request_row = other;
                   }});
  }
  out.push_back({"requests-reversed", "block tables stand in the reverse order of the requests",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   const auto rows = static_cast<uint32_t>(s.step().rows.size());
                   for (SlotSource& source : r.sources) source.request_row = rows - 1 - at.row;
                 }});
  out.push_back({"queries-reversed", "the query rows of a request are in reverse order",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   r.query.query = s.step().rows[at.row].queries - 1 - at.query;
                 }});
  out.push_back({"layer-zero-always", "every layer reads the cache of layer 0",
                 [](const Scene&, const RowAt&, Reading& r) { r.layer = 0; }});
  out.push_back({"layer-plus-one", "every layer reads the cache of the next layer",
                 [](const Scene& s, const RowAt& at, Reading& r) {
                   r.layer = (at.layer + 1) % s.c().shape.layers;
                 }});
  out.push_back({"keys-as-values", "K stands in for V",
                 [](const Scene&, const RowAt&, Reading& r) { r.keys_as_values = true; }});
  out.push_back({"values-as-keys", "V stands in for K",
                 [](const Scene&, const RowAt&, Reading& r) { r.values_as_keys = true; }});
}

}  // namespace

void place_hypotheses(const Scene& scene, std::vector<Hypothesis>& out) {
  page_hypotheses(scene, out);
  head_hypotheses(out);
  row_hypotheses(out);
  table_hypotheses(out);
  if (!scene.has_padded_layout()) query_offset_hypotheses(out);
}

}  // namespace kv
