// Twins in which requests are missing, or go by other names.
#include <algorithm>
#include <map>
#include <set>

#include "harness/case/limits.h"
#include "harness/history/twin_ops.h"

namespace kv {
namespace {

// The rows of a step that `keeps` says; false when none is left.
template <class Keeps>
bool keep_rows(TwinOp& op, Keeps keeps) {
  auto& rows = std::get<op::Step>(op.op).rows;
  auto& tokens = op.told.tokens;
  size_t kept = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!keeps(rows[i].request)) continue;
    std::swap(rows[kept], rows[i]);
    std::swap(tokens[kept++], tokens[i]);
  }
  rows.resize(kept);
  tokens.resize(kept);
  return kept > 0;
}

/// All requests that an operation names.
std::set<RequestId> named(const Op& op) {
  std::set<RequestId> ids;
  std::visit(
      [&ids](const auto& o) {
        if constexpr (requires { o.rows; }) {
          for (const op::StepRow& row : o.rows) ids.insert(row.request);
        } else if constexpr (requires { o.beams; }) {
          ids.insert(o.beams.begin(), o.beams.end());
        } else if constexpr (requires { o.parent; }) {
          ids = {o.parent, o.child};
        } else if constexpr (requires { o.saved; }) {
          ids = {o.request, o.saved};
        } else if constexpr (requires { o.request; }) {
          ids = {o.request};
        }
      },
      op);
  return ids;
}

const call::Admit* content_of(const Happened& h, RequestId request) {
  const auto found = std::find_if(h.contents.begin(), h.contents.end(),
                                  [&](const call::Admit& a) { return a.request == request; });
  return found == h.contents.end() ? nullptr : &*found;
}

/// Those that were cancelled while the step ran.
std::set<RequestId> cancelled_within(const op::Step& step) {
  std::set<RequestId> ids;
  for (const op::StepRow& row : step.rows) {
    if (row.cancel_before_layer > 0) ids.insert(row.request);
  }
  return ids;
}

bool is_about_one(const Op& op) {
  return std::holds_alternative<op::Admit>(op) || std::holds_alternative<op::Truncate>(op) ||
         std::holds_alternative<op::Shift>(op) || std::holds_alternative<op::Cancel>(op) ||
         std::holds_alternative<op::Finish>(op) || std::holds_alternative<op::Preempt>(op) ||
         std::holds_alternative<op::Resume>(op);
}

}  // namespace

bool twin_alone(std::span<const Happened> happened, uint64_t seed, Twin& twin) {
  std::set<RequestId> all, queried;
  for (const Happened& h : happened) {
    all.merge(named(h.op));
    const auto* step = std::get_if<op::Step>(&h.op);
    for (size_t r = 0; step != nullptr && r < step->rows.size(); ++r) {
      if (step->rows[r].queries > 0) queried.insert(step->rows[r].request);
    }
  }
  if (queried.empty() || all.size() < 2) return false;
  const RequestId one = *std::next(queried.begin(), static_cast<ptrdiff_t>(seed % queried.size()));
  bool lives = false;
  for (const Happened& h : happened) {
    if (const call::Admit* content = content_of(h, one)) {
      const auto* reorder = std::get_if<op::Reorder>(&h.op);
      const auto beam = [&](size_t i) { return reorder->beams[i] == one; };
      bool stays = false;
      for (size_t i = 0; reorder != nullptr && i < reorder->beams.size(); ++i) {
        stays |= beam(i) && reorder->sources[i] == one;
      }
      if (stays) continue;
      if (lives) twin.ops.push_back({.op = op::Cancel{one}, .told = {}, .op_index = h.op_index});
      twin.ops.push_back(admission_of(*content, h.op_index));
      lives = true;
      continue;
    }
    TwinOp op = same(h);
    const bool is_step = std::holds_alternative<op::Step>(h.op);
    if (is_step && cancelled_within(std::get<op::Step>(h.op)).contains(one)) lives = false;
    const bool own = is_step ? keep_rows(op, [one](RequestId id) { return id == one; })
                             : is_about_one(h.op) && named(h.op).contains(one);
    if (!own && !std::holds_alternative<op::Complete>(h.op)) continue;
    if (std::holds_alternative<op::Admit>(h.op)) lives = true;
    if (std::holds_alternative<op::Cancel>(h.op) || std::holds_alternative<op::Finish>(h.op)) {
      lives = false;
    }
    twin.ops.push_back(std::move(op));
  }
  return true;
}

namespace {

/// Operations [admitted, cancelled] of a request that nobody has anything from.
struct Visit {
  RequestId request = {};
  size_t admitted = 0, cancelled = 0;
};

std::vector<Visit> visits(std::span<const Happened> happened) {
  std::vector<Visit> found;
  std::map<RequestId, size_t> since;
  const auto end = [&](RequestId id, size_t at) {
    const auto begun = since.find(id);
    if (begun != since.end()) found.push_back({id, begun->second, at});
    since.erase(id);
  };
  for (size_t i = 0; i < happened.size(); ++i) {
    const Op& op = happened[i].op;
    if (const auto* admit = std::get_if<op::Admit>(&op)) {
      since[admit->request] = i;
    } else if (const auto* cancel = std::get_if<op::Cancel>(&op)) {
      end(cancel->request, i);
    } else if (const auto* step = std::get_if<op::Step>(&op)) {
      for (const RequestId id : cancelled_within(*step)) end(id, i);
    } else if (!is_about_one(op)) {
      for (const RequestId id : named(op)) since.erase(id);
    }
  }
  return found;
}

}  // namespace

bool twin_without_cancelled(std::span<const Happened> happened, uint64_t seed, Twin& twin) {
  const std::vector<Visit> all = visits(happened);
  if (all.empty()) return false;
  const Visit& visit = all[seed % all.size()];
  for (size_t i = 0; i < happened.size(); ++i) {
    TwinOp op = same(happened[i]);
    if (i >= visit.admitted && i <= visit.cancelled) {
      if (std::holds_alternative<op::Step>(op.op)) {
        if (!keep_rows(op, [&](RequestId id) { return id != visit.request; })) continue;
      } else if (named(op.op).contains(visit.request)) {
        continue;
      }
    }
    twin.ops.push_back(std::move(op));
  }
  return true;
}

namespace {

/// Who, in the twin, holds what the history's request holds.
class Names {
 public:
  RequestId of(RequestId id) const {
    const auto found = names_.find(id);
    return found == names_.end() ? id : found->second;
  }
  RequestId fresh() { return RequestId(next_--); }
  void admit(RequestId id) {
    const bool taken = std::any_of(names_.begin(), names_.end(), [id](const auto& name) {
      return name.second == id && name.first != id;
    });
    names_[id] = taken ? fresh() : id;
  }
  void forget(RequestId id) { names_.erase(id); }
  void set(RequestId id, RequestId name) { names_[id] = name; }

 private:
  std::map<RequestId, RequestId> names_;
  uint32_t next_ = limits::kRequestIdMax - 2;  // the last two are the judge's
};

void reorder_names(const op::Reorder& reorder, uint32_t op_index, Names& names, Twin& twin) {
  std::map<RequestId, RequestId> after;
  std::set<RequestId> kept;
  const auto add = [&](Op op) { twin.ops.push_back({std::move(op), {}, op_index}); };
  for (const RequestId beam : reorder.beams) {
    const bool goes_on =
        std::find(reorder.sources.begin(), reorder.sources.end(), beam) != reorder.sources.end();
    if (!goes_on) add(op::Cancel{names.of(beam)});
  }
  for (size_t i = 0; i < reorder.beams.size(); ++i) {
    const RequestId source = names.of(reorder.sources[i]);
    RequestId name = source;
    if (!kept.insert(source).second) {
      name = names.fresh();
      add(op::Fork{source, name});
    }
    after[reorder.beams[i]] = name;
  }
  for (const auto& [beam, name] : after) names.set(beam, name);
}

void rename(Op& op, Names& names) {
  std::visit(
      [&names](auto& o) {
        const auto change = [&names](RequestId& id) { id = names.of(id); };
        if constexpr (requires { o.rows; }) {
          for (op::StepRow& row : o.rows) change(row.request);
        } else if constexpr (requires { o.parent; }) {
          change(o.parent), change(o.child);
        } else if constexpr (requires { o.saved; }) {
          change(o.request);
        } else if constexpr (requires { o.request; }) {
          change(o.request);
        }
      },
      op);
}

}  // namespace

bool twin_beams_renamed(std::span<const Happened> happened, uint64_t, Twin& twin) {
  Names names;
  bool changed = false;
  for (const Happened& h : happened) {
    if (const auto* reorder = std::get_if<op::Reorder>(&h.op)) {
      changed |= reorder->beams != reorder->sources;
      reorder_names(*reorder, h.op_index, names, twin);
      continue;
    }
    TwinOp op = same(h);
    if (const auto* admit = std::get_if<op::Admit>(&h.op)) names.admit(admit->request);
    if (const auto* fork = std::get_if<op::Fork>(&h.op)) names.admit(fork->child);
    if (const auto* restore = std::get_if<op::Restore>(&h.op)) {
      names.admit(restore->request);
      op = admission_of(h.contents.at(0), h.op_index);  // who was saved under which name is lost
    }
    rename(op.op, names);
    if (const auto* cancel = std::get_if<op::Cancel>(&h.op)) names.forget(cancel->request);
    if (const auto* finish = std::get_if<op::Finish>(&h.op)) names.forget(finish->request);
    if (const auto* step = std::get_if<op::Step>(&h.op)) {
      for (const RequestId id : cancelled_within(*step)) names.forget(id);
    }
    if (!std::holds_alternative<op::Save>(h.op)) twin.ops.push_back(std::move(op));
  }
  return changed;
}

}  // namespace kv
