// The bearer token. In a pod it is a file that the kubelet rewrites about every hour, so it is read
// again now and then, and at once when the server refuses the one we have.
#pragma once
#include <chrono>
#include <string>

#include "contract/result.h"

namespace tj {

/// Not thread-safe: it lives on the client's thread.
class TokenSource {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kRereadAfter{60};

  /// `file` wins over `token`; both empty: there is none.
  TokenSource(std::string token, std::string file)
      : token_(std::move(token)), file_(std::move(file)) {}

  /// The token to send, "" for none. A file that can't be read is an error only while there is no
  /// token of an earlier reading.
  Result<std::string> current(Instant now);
  /// The server said 401 to `refused`: true when a fresh reading gives another token.
  bool refresh(const std::string& refused, Instant now);

 private:
  Result<void> read(Instant now);

  std::string token_;
  std::string file_;
  bool was_read_ = false;
  Instant read_at_{};
};

}  // namespace tj
