#include "harness/simt/exec/report.h"

#include <cstdio>

namespace kv::simt {
namespace {

uint64_t site_of(const Warp& w, const Ins* i) { return w.launch->cold->program_id << 32 | i->meta; }

uint32_t space_number(ptx::Space space) {
  switch (space) {
    case ptx::Space::kGlobal:
      return 1;
    case ptx::Space::kShared:
      return 2;
    case ptx::Space::kLocal:
      return 3;
    case ptx::Space::kParam:
      return 4;
    case ptx::Space::kConst:
      return 5;
    default:
      return 0;
  }
}

void thread_index(const Warp& w, uint32_t lane, uint32_t (&out)[3]) {
  const Dim3& block = w.launch->cold->block;
  const uint32_t t = w.id * 32 + lane;
  out[0] = t % block.x;
  out[1] = t / block.x % block.y;
  out[2] = t / block.x / block.y;
}

std::string triple(const uint32_t (&v)[3]) {
  return "(" + std::to_string(v[0]) + "," + std::to_string(v[1]) + "," + std::to_string(v[2]) + ")";
}

kv_simt_finding compose(const Warp& w, const Ins* i, const Report& report) {
  const LaunchCold& cold = *w.launch->cold;
  kv_simt_finding f = {};
  f.struct_bytes = sizeof f;
  f.kind = report.kind;
  f.launch = cold.number;
  copy_text(f.kernel, cold.program->demangled);
  if (const ptx::Instruction* source = cold.program->meta[i->meta].source) {
    copy_text(f.instruction, source->text);
    f.ptx_line = source->ptx_line;
    copy_text(f.source_file, source->where.file);
    f.source_line = source->where.line;
    copy_text(f.inlined_at_file, source->where.inlined_at_file);
    f.inlined_at_line = source->where.inlined_at_line;
  }
  for (int k = 0; k < 3; ++k) f.block[k] = w.block->ctaid[k];
  thread_index(w, report.lane, f.thread);
  f.address = report.address;
  f.access_bytes = report.bytes;
  f.space = space_number(report.space);
  const bool global = report.space == ptx::Space::kGlobal || report.space == ptx::Space::kConst ||
                      (report.space == ptx::Space::kGeneric && report.bytes != 0);
  if (global) {
    if (const Extent* extent = cold.space->nearest(report.address)) {
      f.allocation_base = extent->base;
      f.allocation_bytes = extent->bytes;
      f.allocation_number = cold.space->number(*extent);
    }
  }
  copy_text(f.message, report.message);
  return f;
}

}  // namespace

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

kv_simt_finding unsupported_finding(const std::string& kernel, const ptx::Instruction* culprit,
                                    const std::string& message) {
  kv_simt_finding f = {};
  f.kind = KV_SIMT_KIND_UNSUPPORTED;
  copy_text(f.kernel, kernel);
  copy_text(f.message, message);
  if (!culprit) return f;
  copy_text(f.instruction, culprit->text);
  f.ptx_line = culprit->ptx_line;
  copy_text(f.source_file, culprit->where.file);
  f.source_line = culprit->where.line;
  copy_text(f.inlined_at_file, culprit->where.inlined_at_file);
  f.inlined_at_line = culprit->where.inlined_at_line;
  return f;
}

bool fresh(const Warp& w, const Ins* i, uint32_t kind) {
  return !w.launch->cold->log->repeat(kind, site_of(w, i));
}

std::string thread_name(const Warp& w, uint32_t lane) {
  uint32_t thread[3];
  thread_index(w, lane, thread);
  return "thread " + triple(thread) + " of block " + triple(w.block->ctaid);
}

std::string place_name(const ptx::Instruction& source) {
  if (source.where.file.empty()) return "PTX line " + std::to_string(source.ptx_line);
  std::string text = std::string(source.where.file) + ":" + std::to_string(source.where.line);
  if (!source.where.inlined_at_file.empty()) {
    text += " (inlined at " + std::string(source.where.inlined_at_file) + ":" +
            std::to_string(source.where.inlined_at_line) + ")";
  }
  return text;
}

std::string extent_name(AddressSpace& space, uint64_t address) {
  const Extent* extent = space.nearest(address);
  if (!extent) return "there are no allocations";
  const uint64_t number = space.number(*extent);
  const std::string who =
      (number ? "allocation " + std::to_string(number) : "variable " + space.name(*extent)) + " (" +
      std::to_string(extent->bytes) + " bytes at " + hex(extent->base) +
      (extent->live() ? ")" : ", freed)");
  const uint64_t end = extent->base + extent->bytes;
  if (address < extent->base)
    return std::to_string(extent->base - address) + " bytes before " + who;
  if (address < end) return "offset " + std::to_string(address - extent->base) + " of " + who;
  return std::to_string(address - end) + " bytes after the end of " + who;
}

uint64_t race_place(const Warp& w, ptx::Space space, uint64_t address) {
  if (space == ptx::Space::kShared) return uint64_t{1} << 63 | w.block->index << 20 | address >> 4;
  return address >> 4;
}

bool fresh_pending(const Warp& w, const Ins* i, uint32_t kind) {
  for (PendingFinding& p : w.launch->cold->pending) {
    if (p.site != site_of(w, i) || p.finding.kind != kind) continue;
    ++p.repeats;
    return false;
  }
  return fresh(w, i, kind);
}

void file_unless_raced(const Warp& w, const Ins* i, const Report& report, uint64_t place) {
  w.launch->cold->pending.push_back({compose(w, i, report), site_of(w, i), 0, place});
}

void file_pending(LaunchCold& cold) {
  for (const PendingFinding& p : cold.pending) {
    if (cold.raced.count(p.place)) continue;
    cold.log->add(p.finding, p.site);
    for (uint64_t k = 0; k < p.repeats; ++k) cold.log->repeat(p.finding.kind, p.site);
  }
  cold.pending.clear();
}

void file(const Warp& w, const Ins* i, const Report& report) {
  w.launch->cold->log->add(compose(w, i, report), site_of(w, i));
}

}  // namespace kv::simt
