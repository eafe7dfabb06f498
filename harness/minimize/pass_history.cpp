// Histories: the engine's settings go first, then what operations say besides what they do, then
// pages get small with all lengths that are measured in them.
#include <algorithm>

#include "harness/minimize/passes.h"

namespace kv {
namespace {

template <class Edit>
bool take_edited(Shrinker& shrinker, Edit edit) {
  Case c = shrinker.best();
  edit(c);
  return !(c == shrinker.best()) && shrinker.take(std::move(c));
}

/// All lengths, positions and limits in slots.
template <class Change>
void for_each_length(Case& c, Change change) {
  for (Op& operation : c.ops) {
    std::visit(
        [&](auto& o) {
          if constexpr (requires { o.rows; }) {
            for (op::StepRow& row : o.rows) {
              change(row.append);
              change(row.queries);
              row.speculative = std::min(row.speculative, row.append);
              if (row.tree_parents.size() != row.append) row.tree_parents.clear();
            }
          } else if constexpr (requires { o.prefix_of; }) {
            change(o.prompt_tokens);
            change(o.prefix_tokens);
            change(o.slots_max);
            o.prefix_tokens = std::min(o.prefix_tokens, o.prompt_tokens);
          } else if constexpr (requires { o.begin; }) {
            change(o.begin);
            change(o.end);
          } else if constexpr (requires { o.length; }) {
            change(o.length);
          } else if constexpr (requires { o.tokens; }) {
            change(o.tokens);
          }
        },
        operation);
  }
}

}  // namespace

void plain_engine(Shrinker& shrinker) {
  if (!shrinker.best().engine) return;
  take_edited(shrinker, [](Case& c) { c.exec = {}; });
  take_edited(shrinker, [](Case& c) { c.engine->async_depth = 0; });
  take_edited(shrinker, [](Case& c) { c.engine->draft_layers = c.engine->draft_page_count = 0; });
  take_edited(shrinker, [](Case& c) { c.engine->prefix_cache = false; });
  take_edited(shrinker, [](Case& c) { c.engine->host_page_count = 0; });
  take_edited(shrinker, [](Case& c) { c.engine->groups.clear(); });
  for (size_t g = shrinker.best().engine->groups.size(); g-- > 0;) {
    take_edited(shrinker, [g](Case& c) {
      if (c.engine->groups.size() < 2 || g >= c.engine->groups.size()) return;
      c.shape.layers -= c.engine->groups[g].layers;
      c.engine->groups.erase(c.engine->groups.begin() + static_cast<ptrdiff_t>(g));
    });
    take_edited(shrinker, [g](Case& c) {
      if (g >= c.engine->groups.size()) return;
      c.shape.layers -= c.engine->groups[g].layers - 1;
      c.engine->groups[g].layers = 1;
    });
  }
}

void plain_operations(Shrinker& shrinker) {
  if (!shrinker.best().engine) return;
  for (size_t i = 0; i < shrinker.best().ops.size() && !shrinker.spent(); ++i) {
    take_edited(shrinker, [i](Case& c) {
      if (auto* admit = std::get_if<op::Admit>(&c.ops[i])) {
        admit->owner = admit->side_input = 0;
        admit->position_offset = 0;
      }
    });
    take_edited(shrinker, [i](Case& c) {
      if (auto* admit = std::get_if<op::Admit>(&c.ops[i])) {
        admit->prefix_of.reset();
        admit->prefix_tokens = 0;
      }
    });
    take_edited(shrinker, [i](Case& c) {
      auto* step = std::get_if<op::Step>(&c.ops[i]);
      for (size_t r = 0; step != nullptr && r < step->rows.size(); ++r) {
        step->rows[r] = {.request = step->rows[r].request, .append = step->rows[r].append};
        step->padded_layout = step->padded_left = false;
      }
    });
  }
}

// A length keeps its place in the page: whole pages stay whole, and one more stays one more.
void shrink_history_pages(Shrinker& shrinker) {
  if (!shrinker.best().engine) return;
  for (uint32_t slots = 1; slots < shrinker.best().pool.page_slots; slots *= 2) {
    const uint64_t from = shrinker.best().pool.page_slots;
    const bool taken = take_edited(shrinker, [&](Case& c) {
      c.pool.page_slots = slots;
      for_each_length(c, [&](auto& length) {
        const uint64_t whole = length / from, rest = length % from;
        const uint64_t kept = rest + 1 == from ? slots - 1 : std::min<uint64_t>(rest, slots - 1);
        length = static_cast<std::remove_reference_t<decltype(length)>>(whole * slots + kept);
      });
      for (CacheGroup& group : c.engine->groups) {
        if (group.window_left >= 0)
          group.window_left = group.window_left * slots / static_cast<int64_t>(from);
      }
    });
    if (taken || shrinker.spent()) return;
  }
}

// Where requests may only just fit, they may be shorter with as much less room.
void shrink_contexts(Shrinker& shrinker) {
  if (!shrinker.best().engine) return;
  const uint32_t before = shrinker.best().engine->context_limit;
  for (uint32_t limit = 1; limit < before && !shrinker.spent(); limit *= 2) {
    const bool taken = take_edited(shrinker, [&](Case& c) {
      const uint64_t page = c.pool.page_slots;
      const uint64_t old_pages = (before + page - 1) / page, pages = (limit + page - 1) / page;
      c.engine->context_limit = limit;
      c.pool.page_count =
          static_cast<uint32_t>(std::max<uint64_t>(1, c.pool.page_count * pages / old_pages));
      for_each_length(c, [&](auto& length) {
        length = std::min(length, static_cast<std::remove_reference_t<decltype(length)>>(limit));
      });
    });
    if (taken) return;
  }
}

}  // namespace kv
