// The one error type of this project: the world fails in few ways, and only the code decides on a
// retry. Standard library only; GCC 12 has std::expected only in C++23 mode.
#pragma once
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace tj {

enum class Code {
  not_found,    // the thing is not there
  conflict,     // somebody else wrote first, or the name is taken
  gone,         // a resourceVersion too old to watch from: list again
  invalid,      // the input is wrong; a retry gives the same answer
  forbidden,    // by a right, bad credentials, a quota or a policy: a later try may pass
  unavailable,  // refused, reset, overloaded: retry later
  timeout,      // no answer within the deadline; the write may have happened
  internal,     // anything else the world did
};

/// What went wrong with `subject` (a file, a URL path, a variable). `message` is for people.
struct Error {
  Code code = Code::internal;
  std::string message;
  std::string subject;
  std::optional<std::chrono::milliseconds> retry_after;  // the server's own wish (Retry-After)
  bool operator==(const Error&) const = default;
};

/// "not_found", "conflict", ...: for logs and metric labels.
constexpr const char* to_string(Code code) {
  switch (code) {
    case Code::not_found: return "not_found";
    case Code::conflict: return "conflict";
    case Code::gone: return "gone";
    case Code::invalid: return "invalid";
    case Code::forbidden: return "forbidden";
    case Code::unavailable: return "unavailable";
    case Code::timeout: return "timeout";
    case Code::internal: return "internal";
  }
  return "internal";
}

/// "subject: message", or the message alone.
inline std::string describe(const Error& error) {
  return error.subject.empty() ? error.message : error.subject + ": " + error.message;
}

/// Ends the program: for states that only a bug can reach, in release builds too.
[[noreturn]] inline void panic(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: bug: %s\n", file, line, what.c_str());
  std::abort();
}
#define TJ_CHECK(condition, what)                                                             \
  do {                                                                                        \
    if (!(condition)) ::tj::panic(__FILE__, __LINE__, std::string(#condition ": ") + (what)); \
  } while (false)

/// A value or an Error. Reading the wrong side is a bug and aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  const T& value() const& {
    require_value();
    return std::get<0>(state_);
  }
  T& value() & {
    require_value();
    return std::get<0>(state_);
  }
  T&& value() && {
    require_value();
    return std::get<0>(std::move(state_));
  }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }
  const Error& error() const {
    TJ_CHECK(!ok(), "no error to read");
    return std::get<1>(state_);
  }

 private:
  void require_value() const { TJ_CHECK(ok(), describe(std::get<1>(state_))); }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_; }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    TJ_CHECK(!ok(), "no error to read");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace tj
