#include "trainer/launch/line_relay.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

namespace tj::trainer {
namespace {

/// Bytes of the first whole line; 0 when there is none yet. A "\r" at the very end may become
/// "\r\n".
std::size_t line_bytes(const std::string& text, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (text[at] == '\n') return at + 1 - from;
    const bool line_restarts = text[at] == '\r' && at + 1 < text.size() && text[at + 1] != '\n';
    if (line_restarts) return at + 1 - from;
  }
  return 0;
}

const pollfd* find(const std::vector<pollfd>& polls, int fd, int events) {
  const auto found = std::find_if(polls.begin(), polls.end(), [&](const pollfd& poll) {
    return poll.fd == fd && (poll.events & events) != 0;
  });
  return found == polls.end() || found->revents == 0 ? nullptr : &*found;
}

}  // namespace

std::string take_lines(std::string& text, const std::string& prefix) {
  std::string lines;
  std::size_t taken_bytes = 0;
  while (const std::size_t bytes = line_bytes(text, taken_bytes)) {
    lines += prefix;
    lines.append(text, taken_bytes, bytes);
    taken_bytes += bytes;
  }
  text.erase(0, taken_bytes);
  if (text.size() >= kLineBytesMax) {
    lines += prefix + text + "\n";
    text.clear();
  }
  return lines;
}

void LineRelay::add(UniqueFd source, std::string prefix) {
  ::fcntl(source.value(), F_SETFL, O_NONBLOCK);
  sources_.push_back({std::move(source), std::move(prefix), {}});
}

void LineRelay::add_polls(std::vector<pollfd>& polls) const {
  if (!pending_.empty()) polls.push_back({.fd = target_, .events = POLLOUT, .revents = 0});
  if (!readable_now()) return;  // a hung-up source would wake poll for ever
  for (const Source& source : sources_) {
    polls.push_back({.fd = source.fd.value(), .events = POLLIN, .revents = 0});
  }
}

void LineRelay::handle(const std::vector<pollfd>& polls) {
  for (Source& source : sources_) {
    if (find(polls, source.fd.value(), POLLIN) && !read_some(source)) close(source);
  }
  std::erase_if(sources_, [](const Source& source) { return !source.fd.open(); });
  if (find(polls, target_, POLLOUT)) write_some();
}

bool LineRelay::done() const { return sources_.empty() && pending_.empty(); }

void LineRelay::finish_sources() {
  for (Source& source : sources_) {
    // A pipe holds at most 1 MiB (fs.pipe-max-size) and nobody fills it any more.
    for (int reads = 0; reads < 64 && read_some(source); ++reads) {}
    close(source);
  }
  sources_.clear();
}

bool LineRelay::read_some(Source& source) {
  std::array<char, 16 * 1024> buffer;
  const ssize_t read_bytes = ::read(source.fd.value(), buffer.data(), buffer.size());
  if (read_bytes < 0) return errno == EAGAIN || errno == EINTR;
  if (read_bytes == 0) return false;
  source.partial.append(buffer.data(), static_cast<std::size_t>(read_bytes));
  pass_on(take_lines(source.partial, source.prefix));
  return true;
}

void LineRelay::pass_on(const std::string& lines) {
  if (lines.empty()) return;
  if (also_ != nullptr && *also_) (*also_)(lines);
  pending_ += lines;
}

void LineRelay::close(Source& source) {
  // The next line belongs to another process, so an unended one is ended here.
  if (!source.partial.empty()) pass_on(source.prefix + source.partial + "\n");
  source.partial.clear();
  source.fd.reset();
}

void LineRelay::write_some() {
  // poll promises room for PIPE_BUF bytes; the descriptor is shared with others, so it stays in
  // blocking mode.
  const std::size_t bytes = std::min<std::size_t>(pending_.size(), PIPE_BUF);
  const ssize_t written_bytes = ::write(target_, pending_.data(), bytes);
  if (written_bytes > 0) pending_.erase(0, static_cast<std::size_t>(written_bytes));
  const bool nobody_reads = written_bytes < 0 && errno != EINTR && errno != EAGAIN;
  if (nobody_reads) drop_everything();
}

/// The writers then learn it as if they had written themselves: by SIGPIPE.
void LineRelay::drop_everything() {
  pending_.clear();
  sources_.clear();
}

}  // namespace tj::trainer
