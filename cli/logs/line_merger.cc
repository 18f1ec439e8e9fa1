#include "cli/logs/line_merger.h"

#include <algorithm>
#include <utility>

namespace tj {
namespace {

/// Beside its text, what a waiting line takes (deque, string, allocator).
constexpr std::size_t kLineOverheadBytes = 64;

}  // namespace

std::size_t LineMerger::add_source() {
  sources_.emplace_back();
  ++silent_count_;
  return sources_.size() - 1;
}

void LineMerger::push(std::size_t number, LogTime time, std::string_view text) {
  Source& source = sources_[number];
  source.newest = std::max(source.newest, time);
  source.lines.push_back({source.newest, std::string(text)});
  source.bytes += text.size() + kLineOverheadBytes;
  if (source.lines.size() > 1) return;
  --silent_count_;
  heads_.push({source.newest, number});
  emit_ready();
}

void LineMerger::end(std::size_t number) {
  Source& source = sources_[number];
  if (std::exchange(source.has_ended, true)) return;
  if (source.lines.empty()) --silent_count_;
  emit_ready();
}

void LineMerger::emit_ready() {
  while (silent_count_ == 0 && !heads_.empty()) {
    const Head head = heads_.top();
    heads_.pop();
    Source& source = sources_[head.source];
    const Line line = std::move(source.lines.front());
    source.lines.pop_front();
    source.bytes -= line.text.size() + kLineOverheadBytes;
    if (!source.lines.empty()) {
      heads_.push({source.lines.front().time, head.source});
    } else if (!source.has_ended) {
      ++silent_count_;
    }
    emit_(head.source, line.time, line.text);
  }
}

}  // namespace tj
