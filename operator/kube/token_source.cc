#include "operator/kube/token_source.h"

#include "operator/kube/file_text.h"

namespace tj {

Result<void> TokenSource::read(Instant now) {
  Result<std::string> text = read_file_text(file_);
  if (!text) return text.error();
  std::string token = trimmed(*text);
  if (token.empty()) return Error{Code::invalid, "is empty; it must hold a token", file_, {}};
  token_ = std::move(token);
  was_read_ = true;
  read_at_ = now;
  return {};
}

Result<std::string> TokenSource::current(Instant now) {
  if (file_.empty()) return token_;
  if (was_read_ && now - read_at_ < kRereadAfter) return token_;
  const Result<void> fresh = read(now);
  if (!fresh && !was_read_) return fresh.error();
  return token_;
}

bool TokenSource::refresh(const std::string& refused, Instant now) {
  if (file_.empty()) return false;
  return (token_ != refused) || (read(now).ok() && token_ != refused);
}

}  // namespace tj
