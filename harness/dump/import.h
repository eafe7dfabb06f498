// Purpose: a production dump of one attention call becomes a case.
// Contract: the requests are admitted, hold their slots, and attend with their query rows in one
// step (more where a step would be too large); values come from a side-car, bit by bit. Pages are
// kverify's own: of the dump's size where the format allows it, but not at the dump's places, and
// pages that requests share become copies. Codes of 8 bits become the numbers that an append turns
// into the same codes, by the dump's scales; a code of which there is none is an error. The case is
// lawful and its layout that of the dump; it has no digest yet. Values that attention reads must be
// finite. Example: KV_ASSIGN_OR_RETURN(const Imported made, import_dump(file, {.name = path}));
#pragma once

#include <string>
#include <vector>

#include "harness/case/case.h"
#include "harness/case/tensor_file.h"
#include "harness/core/result.h"
#include "harness/dump/settings.h"

namespace kv {

struct DumpOptions {
  std::string name;    // of the file: in messages and in the case
  std::string prefix;  // of the tensors, e.g. "layers.3.", or "layers.{}." for every layer
  DumpSettings settings;
};

struct Imported {
  Case c;                             // data.tensors_file is empty
  std::string side_car;               // the file that it needs
  std::vector<std::string> assumed;   // what neither the options nor the dump said
  std::vector<std::string> not_used;  // tensors of the dump
  uint64_t shared_pages = 0;          // that more than one request's table names
};

/// A file of either kind, by its beginning; at most kTensorFileBytesMax bytes.
Result<TensorFile> read_dump(const std::string& path);

Result<Imported> import_dump(const TensorFile& file, const DumpOptions& options);

}  // namespace kv
