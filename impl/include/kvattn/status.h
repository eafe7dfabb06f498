// Purpose: how kvattn says that a call did not do what it was asked.
// Contract: a Status other than ok has changed nothing on the device, and carries one sentence:
// what, where, expected, got. Nothing in kvattn throws, prints or exits.
// Example:  if (Status s = attend(call, plan, shape); !s.ok()) return s;
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace kvattn {

enum class StatusCode {
  kOk,
  kRefused,      // the arguments break the contract
  kExhausted,    // lawful, but there is no room now; it may succeed later
  kUnsupported,  // lawful, but not offered
  kFailed,       // CUDA or an allocation failed
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string text) : code_(code), text_(std::move(text)) {}
  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& text() const { return text_; }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string text_;
};

/// Concatenates the printed forms of its arguments.
template <class... Parts>
std::string sentence(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
Status refused(const Parts&... parts) {
  return {StatusCode::kRefused, sentence(parts...)};
}
template <class... Parts>
Status exhausted(const Parts&... parts) {
  return {StatusCode::kExhausted, sentence(parts...)};
}
template <class... Parts>
Status unsupported(const Parts&... parts) {
  return {StatusCode::kUnsupported, sentence(parts...)};
}
template <class... Parts>
Status failed(const Parts&... parts) {
  return {StatusCode::kFailed, sentence(parts...)};
}

/// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(T value) : value_(std::move(value)) {}
  StatusOr(Status status) : status_(std::move(status)) {}
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T& operator*() const& { return *value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

/// Returns from the calling function with the Status of `expression` unless it is ok.
#define KVATTN_RETURN_IF_ERROR(expression)                                                        \
  do {                                                                                            \
    if (::kvattn::Status kvattn_status = (expression); !kvattn_status.ok()) return kvattn_status; \
  } while (false)

}  // namespace kvattn
