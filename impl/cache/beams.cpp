// Fork and reorder: requests that hold the same pages.
#include <algorithm>

#include "impl/cache/state.h"

namespace kvattn {

StatusOr<Handle> PagedCache::fork(const Handle& parent, RequestId child) {
  State& s = *state_;
  StatusOr<Request*> found = s.require_active("fork", parent);
  if (!found.ok()) return found.status();
  const Content& from = s.content(**found);
  KVATTN_RETURN_IF_ERROR(s.why_no_request("fork", child, from.slots_max));
  Request& r = s.create_request(child, (*found)->owner);
  s.copy(from, s.content(r));
  return s.handle_of(r);
}

Status PagedCache::State::why_no_reorder(std::span<const RequestId> beams,
                                         std::span<const RequestId> sources) {
  if (beams.size() != sources.size()) {
    return refused("reorder: expected as many sources as beams, got ", sources.size(), " and ",
                   beams.size());
  }
  for (size_t i = 0; i < beams.size(); ++i) {
    const Request* r = find(beams[i]);
    if (r == nullptr || r->state != RequestState::kActive) {
      return refused("reorder: expected an active request, got ", index_of(beams[i]));
    }
    if (r->owner != find(beams[0])->owner) {
      return refused("reorder: request ", index_of(beams[i]), " belongs to owner ",
                     index_of(r->owner), ", expected ", index_of(find(beams[0])->owner));
    }
    if (std::ranges::find(beams.first(i), beams[i]) != beams.begin() + i) {
      return refused("reorder: request ", index_of(beams[i]), " is named twice");
    }
    if (std::ranges::find(beams, sources[i]) == beams.end()) {
      return refused("reorder: source ", index_of(sources[i]), " is not one of the beams");
    }
  }
  PageCount before, after;
  for (size_t i = 0; i < beams.size(); ++i) {
    before += worst_pages(content(*find(beams[i])).slots_max);
    after += worst_pages(content(*find(sources[i])).slots_max);
  }
  if (after > before && after - before > budget() - committed()) {
    return exhausted("reorder: expected ", (budget() - committed()).value * config.page_bytes.value,
                     " bytes of worst cases more at most, got ",
                     (after - before).value * config.page_bytes.value);
  }
  return {};
}

// A source's content goes to the first beam that continues it; further ones copy it into the
// contents of the beams that nobody continues, of which there are as many.
Status PagedCache::reorder(std::span<const RequestId> beams, std::span<const RequestId> sources) {
  State& s = *state_;
  KVATTN_RETURN_IF_ERROR(s.why_no_reorder(beams, sources));
  auto& dropped = s.request_scratch;
  dropped.clear();
  for (RequestId beam : beams) {
    if (std::ranges::find(sources, beam) == sources.end()) {
      dropped.push_back(s.find(beam)->content);
    }
  }
  const size_t first = dropped.size();
  for (RequestId source : sources) dropped.push_back(s.find(source)->content);
  const auto from = std::span(dropped).subspan(first);
  auto spare = std::span(dropped).first(first);
  for (size_t i = 0; i < beams.size(); ++i) {
    int32_t content = from[i];
    if (std::ranges::find(from.first(i), content) != from.begin() + i) {
      content = spare.back();
      spare = spare.first(spare.size() - 1);
      s.drop_all(s.contents[content]);
      s.copy(s.contents[from[i]], s.contents[content]);
    }
    s.find(beams[i])->content = content;
  }
  return {};
}

}  // namespace kvattn
