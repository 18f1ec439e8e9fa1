#include "trainer/workload/text_output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "contract/utf8.h"

namespace tj::trainer {
namespace {

constexpr std::size_t kSequenceBytesMax = 4;

/// How many bytes a sequence has that begins so; 1 where none does.
std::size_t announced_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte >= 0xf0) return 4;
  if (byte >= 0xe0) return 3;
  return byte >= 0xc0 ? 2 : 1;
}

/// Bytes at the end of `text` that more could make a character of. A leading byte always begins a
/// new part, so that to cut there changes nothing of what is invalid.
std::size_t unfinished_bytes(std::string_view text) {
  const auto most = std::min(kSequenceBytesMax - 1, text.size());
  for (std::size_t count = 1; count <= most; ++count) {
    const char byte = text[text.size() - count];
    if (!is_utf8_continuation(byte)) return announced_bytes(byte) > count ? count : 0;
  }
  return 0;
}

}  // namespace

std::string Utf8Stream::push(std::string_view bytes) {
  held_ += bytes;
  const auto end = held_.size() - unfinished_bytes(held_);
  auto text = with_invalid_utf8_replaced(std::string_view(held_).substr(0, end));
  held_.erase(0, end);
  return text;
}

std::string Utf8Stream::finish() {
  auto text = with_invalid_utf8_replaced(held_);
  held_.clear();
  return text;
}

Result<void> TextOutput::write(std::string_view bytes) { return show(stream_.push(bytes)); }

Result<void> TextOutput::end_text() {
  if (const auto shown = show(stream_.finish()); !shown) return shown;
  return is_in_line_ ? show("\n") : Result<void>();
}

Result<void> TextOutput::show(const std::string& text) {
  if (!text.empty()) is_in_line_ = text.back() != '\n';
  for (std::string_view rest = text; !rest.empty();) {
    const auto count = ::write(descriptor_, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      return Error{.code = Code::unavailable,
                   .message = std::string("can't be written: ") + std::strerror(errno),
                   .subject = "standard output"};
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

}  // namespace tj::trainer
