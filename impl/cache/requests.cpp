// Which request a call means, and whether its handle still names it.
#include "impl/cache/state.h"

namespace kvattn {

Request* PagedCache::State::find(RequestId id) {
  for (Request& r : requests) {
    if (r.exists && r.id == id) return &r;
  }
  return nullptr;
}

Request* PagedCache::State::find(const Handle& handle) {
  const auto slot = index_of(handle.batch_slot);
  if (slot >= 0 && slot < std::ssize(batch)) {
    Request* r = batch[slot];
    if (r != nullptr && r->id == handle.request) return r;
  }
  return find(handle.request);
}

Handle PagedCache::State::handle_of(const Request& r) const {
  const Content& c = content(r);
  int32_t layers = 0;
  for (const LayerGroup& group : config.groups) layers += group.layers;
  return {.request = r.id,
          .owner = r.owner,
          .ticket = r.ticket,
          .batch_slot = r.batch_slot,
          .layers = layers,
          .length = SlotCount(r.state == RequestState::kPreempted ? 0 : c.length()),
          .position_offset = c.root.position_offset};
}

StatusOr<Request*> PagedCache::State::require(const Handle& handle) {
  Request* r = find(handle);
  if (r == nullptr) {
    return refused("request ", index_of(handle.request), ": expected one that exists");
  }
  if (r->ticket != handle.ticket || r->owner != handle.owner) {
    return refused("request ", index_of(handle.request), ": expected ticket ", index_of(r->ticket),
                   " of owner ", index_of(r->owner), ", got ticket ", index_of(handle.ticket),
                   " of owner ", index_of(handle.owner));
  }
  return r;
}

StatusOr<Request*> PagedCache::State::require_active(const char* operation, const Handle& handle) {
  StatusOr<Request*> r = require(handle);
  if (r.ok() && (*r)->state != RequestState::kActive) {
    return refused(operation, ": request ", index_of(handle.request),
                   " is preempted; expected an active one");
  }
  return r;
}

StatusOr<Handle> PagedCache::find(RequestId request) const {
  const Request* r = state_->find(request);
  if (r == nullptr) return refused("request ", index_of(request), ": expected one that exists");
  return state_->handle_of(*r);
}

std::span<const Page> PagedCache::table(const Handle& handle, Group group) const {
  return state_->content(*state_->find(handle)).tables[index_of(group)];
}

std::span<const Token> PagedCache::tokens(const Handle& handle) const {
  return state_->content(*state_->find(handle)).tokens;
}

RequestState PagedCache::state(const Handle& handle) const { return state_->find(handle)->state; }

SideInput PagedCache::side_input(const Handle& handle) const {
  return state_->content(*state_->find(handle)).root.side_input;
}

SlotCount PagedCache::slots_max(const Handle& handle) const {
  return state_->content(*state_->find(handle)).slots_max;
}

SlotCount PagedCache::kept_from(const Handle& handle, Group group) const {
  const Content& c = state_->content(*state_->find(handle));
  return SlotCount(c.kept[index_of(group)] * state_->page_slots());
}

}  // namespace kvattn
