#include "cli/logs/log_file.h"

#include <algorithm>
#include <fstream>
#include <utility>

namespace tj {
namespace {

constexpr std::size_t kChunkBytes = 64 * 1024;

std::string read_at(std::ifstream& file, std::uint64_t offset, std::size_t bytes) {
  std::string chunk(bytes, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(chunk.data(), static_cast<std::streamsize>(bytes));
  chunk.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return chunk;
}

}  // namespace

void LogFile::seek_to_tail(std::int64_t lines) {
  std::ifstream file(path_, std::ios::binary);
  std::error_code failure;
  const std::uint64_t size = std::filesystem::file_size(path_, failure);
  if (!file || failure) return;
  offset_ = size;
  if (lines <= 0) return;
  std::int64_t ends_seen = 0;  // the newline at the very end ends the last line
  while (offset_ > 0) {
    const std::uint64_t begin = offset_ - std::min<std::uint64_t>(offset_, kChunkBytes);
    const std::string chunk = read_at(file, begin, static_cast<std::size_t>(offset_ - begin));
    for (std::size_t at = chunk.size(); at > 0; --at) {
      const std::uint64_t next_line = begin + at;
      const bool is_before_a_line = chunk[at - 1] == '\n' && next_line < size;
      if (is_before_a_line && ++ends_seen >= lines) {
        offset_ = next_line;
        return;
      }
    }
    offset_ = begin;
  }
}

bool LogFile::fill() {
  std::ifstream file(path_, std::ios::binary);
  if (!file) return false;
  const std::string chunk = read_at(file, offset_, kChunkBytes);
  offset_ += chunk.size();
  rest_ += chunk;
  return !chunk.empty();
}

bool LogFile::read(std::size_t lines_max, bool is_final,
                   const std::function<void(std::string_view line)>& on_line) {
  std::size_t at = 0;
  bool may_have_more = true;
  while (lines_max > 0 && may_have_more) {
    std::size_t end = rest_.find('\n', at);
    const bool is_too_long = end == std::string::npos && rest_.size() - at >= kLineBytesMax;
    if (end == std::string::npos && !is_too_long) {
      rest_.erase(0, std::exchange(at, 0));
      may_have_more = fill();
      continue;
    }
    if (is_too_long) end = at + kLineBytesMax;
    on_line(std::string_view(rest_).substr(at, end - at));
    at = is_too_long ? end : end + 1;
    --lines_max;
  }
  rest_.erase(0, at);
  if (!may_have_more && is_final && !rest_.empty()) {
    on_line(rest_);
    rest_.clear();
  }
  return may_have_more;
}

}  // namespace tj
