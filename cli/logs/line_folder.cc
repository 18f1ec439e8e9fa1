#include "cli/logs/line_folder.h"

#include <utility>

namespace tj {

std::optional<std::uint64_t> LineFolder::find(int rank, std::string_view text) const {
  const auto same = by_text_.find(text);
  if (same == by_text_.end()) return std::nullopt;
  const auto last = last_of_rank_.find(rank);
  const bool is_behind = last == last_of_rank_.end() || last->second < same->second;
  return is_behind ? std::optional(same->second) : std::nullopt;
}

void LineFolder::append(int rank, LogTime time, std::string_view text, LogTime now) {
  const std::uint64_t number = first_ + waiting_.size();
  Waiting& added = waiting_.emplace_back(
      Waiting{.line = {.ranks = {}, .time = time, .text = std::string(text)}, .since = now});
  added.line.ranks.insert(rank);
  bytes_ += added.line.text.size();
  by_text_.erase(added.line.text);  // its key was the text of an earlier line
  by_text_.emplace(added.line.text, number);
  last_of_rank_[rank] = number;
}

void LineFolder::add(int rank, LogTime time, std::string_view text, LogTime now) {
  if (bounds_.delay.count() == 0 || rank_count_ == 1) {
    flush();
    FoldedLine line{.ranks = {}, .time = time, .text = std::string(text)};
    line.ranks.insert(rank);
    return emit_(line);
  }
  advance(now);
  if (const auto number = find(rank, text)) {
    at(*number).line.ranks.insert(rank);
    last_of_rank_[rank] = *number;
  } else {
    append(rank, time, text, now);
  }
  while (is_first_complete() || is_too_much()) emit_first();
}

bool LineFolder::is_first_complete() const {
  return !waiting_.empty() && rank_count_ > 0 && waiting_.front().line.ranks.size() >= rank_count_;
}

bool LineFolder::is_too_much() const {
  return !waiting_.empty() && (waiting_.size() > bounds_.lines_max || bytes_ > bounds_.bytes_max);
}

void LineFolder::emit_first() {
  const Waiting& front = waiting_.front();
  emit_(front.line);
  bytes_ -= front.line.text.size();
  const auto same = by_text_.find(front.line.text);
  if (same != by_text_.end() && same->second == first_) by_text_.erase(same);
  waiting_.pop_front();
  ++first_;
}

void LineFolder::advance(LogTime now) {
  while (!waiting_.empty() && now - waiting_.front().since >= bounds_.delay) emit_first();
}

std::optional<LogTime> LineFolder::next_due() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.front().since + bounds_.delay;
}

void LineFolder::flush() {
  while (!waiting_.empty()) emit_first();
}

}  // namespace tj
