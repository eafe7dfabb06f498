// Purpose: how a function that can be expected to fail says so.
// Contract: a Result holds either a value or an Error, never both. `value()` on an error is a
// programmer's fault and aborts (KV_CHECK).
// Example:  Result<Case> c = parse_case(text); if (!c.ok()) return c.error();
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "harness/core/check.h"

namespace kv {

/// Why an operation failed, in the terms of the exit codes.
enum class ErrorKind {
  kBadInput,     // exit 2: usage, malformed or hostile input
  kEnvironment,  // exit 3: this machine lacks something
  kUnsupported,  // counted, exit 7 only when nothing else ran
  kTimeLimit,    // exit 6
};

/// One clear sentence: what, where, expected, got. Shown to a person as it is.
struct Error {
  ErrorKind kind = ErrorKind::kBadInput;
  std::string message;
};

inline Error bad_input(std::string message) { return {ErrorKind::kBadInput, std::move(message)}; }
inline Error environment_error(std::string message) {
  return {ErrorKind::kEnvironment, std::move(message)};
}
inline Error unsupported(std::string message) {
  return {ErrorKind::kUnsupported, std::move(message)};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  T& value() & {
    KV_CHECK(ok(), error_message());
    return std::get<T>(state_);
  }
  const T& value() const& {
    KV_CHECK(ok(), error_message());
    return std::get<T>(state_);
  }
  T&& value() && {
    KV_CHECK(ok(), error_message());
    return std::get<T>(std::move(state_));
  }
  const Error& error() const {
    KV_CHECK(!ok(), "error() of a Result that holds a value");
    return std::get<Error>(state_);
  }

  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

 private:
  std::string error_message() const { return ok() ? "" : std::get<Error>(state_).message; }
  std::variant<T, Error> state_;
};

/// The Result of an operation that yields nothing.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    KV_CHECK(!ok(), "error() of a Result that holds no error");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

/// Returns from the calling function with the error of `expression`, if it has one.
#define KV_RETURN_IF_ERROR(expression)                                               \
  do {                                                                               \
    if (auto kv_status_ = (expression); !kv_status_.ok()) return kv_status_.error(); \
  } while (false)

/// `KV_ASSIGN_OR_RETURN(auto x, f())`: x is the value of f(), or the caller returns its error.
#define KV_CONCAT_(a, b) a##b
#define KV_CONCAT(a, b) KV_CONCAT_(a, b)
#define KV_ASSIGN_OR_RETURN(declaration, expression) \
  KV_ASSIGN_OR_RETURN_(KV_CONCAT(kv_result_, __LINE__), declaration, expression)
#define KV_ASSIGN_OR_RETURN_(name, declaration, expression) \
  auto name = (expression);                                 \
  if (!name.ok()) return name.error();                      \
  declaration = std::move(name).value()

}  // namespace kv
