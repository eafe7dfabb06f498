#include "harness/dump/npz.h"

#include <fmt/format.h>
#include <zip.h>

#include <memory>

#include "harness/case/problem.h"
#include "harness/dump/npy.h"

namespace kv {
namespace {

constexpr std::string_view kSuffix = ".npy";

struct Archive {
  zip_t* zip = nullptr;
  ~Archive() {
    if (zip != nullptr) zip_discard(zip);
  }
};
struct Member {
  zip_file_t* file = nullptr;
  ~Member() {
    if (file != nullptr) zip_fclose(file);
  }
};

class Reader {
 public:
  Reader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Result<TensorFile> run() {
    KV_RETURN_IF_ERROR(open());
    const zip_int64_t count = zip_get_num_entries(archive_.zip, 0);
    if (count < 1 || count > static_cast<zip_int64_t>(kTensorsMax)) {
      return wrong(fmt::format("1 to {} arrays", kTensorsMax), std::to_string(count));
    }
    for (zip_int64_t i = 0; i < count; ++i) {
      KV_RETURN_IF_ERROR(add(static_cast<zip_uint64_t>(i)));
    }
    return std::move(file_);
  }

 private:
  Error wrong(std::string_view expected, std::string_view got) const {
    return bad_input(fmt::format("{}: expected {}, got {}", name_, expected, got));
  }

  Result<void> open() {
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t* source = zip_source_buffer_create(text_.data(), text_.size(), 0, &error);
    if (source != nullptr) {
      archive_.zip = zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error);
      if (archive_.zip == nullptr) zip_source_free(source);
    }
    const std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    if (archive_.zip != nullptr) return {};
    return wrong("a zip of arrays (.npz)", in_quotes(why));
  }

  Result<void> add(zip_uint64_t index) {
    zip_stat_t about;
    const bool known = zip_stat_index(archive_.zip, index, 0, &about) == 0 &&
                       (about.valid & ZIP_STAT_NAME) != 0 && (about.valid & ZIP_STAT_SIZE) != 0;
    if (!known) return wrong("a name and a size of each member", "none");
    std::string member = about.name;
    const std::string where = fmt::format("{}: {}", name_, in_quotes(member));
    const auto refuse = [&](std::string_view expected, std::string_view got) {
      return bad_input(fmt::format("{}: expected {}, got {}", where, expected, got));
    };
    if (!member.ends_with(kSuffix)) return refuse("a name that ends in .npy", "another");
    member.resize(member.size() - kSuffix.size());
    if (file_.find(member) != nullptr) return refuse("each name once", "it twice");
    const uint64_t room = kTensorFileBytesMax - file_.data.size();
    if (about.size > room) {
      return refuse(fmt::format("at most {} bytes of arrays", kTensorFileBytesMax),
                    fmt::format("{} more bytes", about.size));
    }
    const auto bytes = unpack(index, about.size);
    if (!bytes.ok()) return bad_input(where + ": " + bytes.error().message);
    return add_npy(file_, member, *bytes, where);
  }

  /// The header's size is a promise: memory grows with what really comes, up to it.
  Result<std::string> unpack(zip_uint64_t index, uint64_t size) {
    const Member member{zip_fopen_index(archive_.zip, index, 0)};
    if (member.file == nullptr) {
      return bad_input("cannot unpack: " + in_quotes(zip_strerror(archive_.zip)));
    }
    std::string bytes;
    const auto block = std::make_unique<char[]>(kBlock);
    for (;;) {
      const zip_int64_t got = zip_fread(member.file, block.get(), kBlock);
      if (got < 0) return bad_input("cannot unpack: " + in_quotes(zip_file_strerror(member.file)));
      if (got == 0) break;
      bytes.append(block.get(), static_cast<size_t>(got));
      if (bytes.size() > size) break;
    }
    if (bytes.size() == size) return bytes;
    return bad_input(fmt::format("expected the {} bytes that its header says, got {}", size,
                                 bytes.size() > size ? "more" : std::to_string(bytes.size())));
  }

  static constexpr size_t kBlock = 1 << 18;

  const std::string_view text_, name_;
  Archive archive_;
  TensorFile file_;
};

}  // namespace

Result<TensorFile> parse_npz(std::string_view text, std::string_view name) {
  return Reader(text, name).run();
}

}  // namespace kv
