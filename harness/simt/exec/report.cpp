#include "harness/simt/exec/report.h"

#include <cstdio>

namespace kv::simt {
namespace {

uint64_t site_of(const Warp& w, const Ins* i) {
  return w.launch->cold->program_id << 32 | i->meta;
}

uint32_t space_number(ptx::Space space) {
  switch (space) {
    case ptx::Space::kGlobal: return 1;
    case ptx::Space::kShared: return 2;
    case ptx::Space::kLocal: return 3;
    case ptx::Space::kParam: return 4;
    case ptx::Space::kConst: return 5;
    default: return 0;
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

}  // namespace

std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
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
  std::string text =
      std::string(source.where.file) + ":" + std::to_string(source.where.line);
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
  if (address < extent->base) return std::to_string(extent->base - address) + " bytes before " + who;
  if (address < end) return "offset " + std::to_string(address - extent->base) + " of " + who;
  return std::to_string(address - end) + " bytes after the end of " + who;
}

void file(const Warp& w, const Ins* i, const Report& report) {
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
  cold.log->add(f, site_of(w, i));
}

}  // namespace kv::simt
