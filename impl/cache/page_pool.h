// Purpose: the state of every page of a pool: who counts on it, whether it is published, and when
// it may be handed out again.
// Contract: owned (references > 0), cached (published, no references; a list from the least to the
// most recently used), fenced (a launched step may still touch it) and free pages partition the
// pool. Nothing is allocated after construction. A misuse (dropping a page that nobody holds)
// asserts.
// Example:  Page p = pool.take(); pool.drop(p, step); pool.complete(step);  // p is free again
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kvattn/units.h"

namespace kvattn {

/// A node of the prefix index; none: -1.
enum class NodeId : int32_t {};
constexpr NodeId kNoNode{-1};

class PagePool {
 public:
  explicit PagePool(PageCount pages);

  PageCount size() const { return PageCount(static_cast<int64_t>(records_.size())); }
  uint32_t references(Page page) const { return record(page).references; }
  bool is_published(Page page) const { return record(page).node != kNoNode; }
  NodeId node(Page page) const { return record(page).node; }
  Group group(Page page) const { return record(page).group; }
  /// Only its one holder may write it.
  bool is_writable(Page page) const { return references(page) == 1 && !is_published(page); }

  PageCount free_pages() const { return PageCount(static_cast<int64_t>(free_.size())); }
  /// A free page, with one reference.
  Page take(Group group);
  void hold(Page page);
  /// One holder less, whose last launched step is `last`. Returns true when the page was fenced.
  bool drop(Page page, StepNumber last);
  void publish(Page page, NodeId node) { record(page).node = node; }

  /// Cached pages that could be evicted now, counted up to `enough`.
  PageCount evictable(PageCount enough) const;
  /// The one to be evicted first, or kNoPage.
  Page oldest_evictable() const;
  /// Makes a cached page free; the index has forgotten it.
  void evict(Page page);

  /// Steps up to this one have ended.
  void complete(StepNumber step);

  /// Moves what is known of an unfree page to a free one; afterwards free_in_order() must be
  /// called.
  void relocate(Page from, Page to);
  void free_in_order(PageCount used);

  std::span<const Page> free_list() const { return free_; }  // the last is taken next
  std::span<const Page> fenced_list() const { return fenced_; }
  Page oldest_cached() const { return oldest_; }
  Page next_cached(Page page) const { return record(page).newer; }

 private:
  struct Record {
    uint32_t references = 0;
    NodeId node = kNoNode;
    Group group = {};
    StepNumber last_step = {};              // that may touch it, of holders that are gone
    Page older = kNoPage, newer = kNoPage;  // in the list of cached pages
  };
  Record& record(Page page) { return records_[index_of(page)]; }
  const Record& record(Page page) const { return records_[index_of(page)]; }
  bool is_in_flight(const Record& r) const { return r.last_step > completed_; }
  void link(Page page);
  void unlink(Page page);

  std::vector<Record> records_;
  std::vector<Page> free_, fenced_;
  Page oldest_ = kNoPage, newest_ = kNoPage;
  StepNumber completed_ = {};
};

}  // namespace kvattn
