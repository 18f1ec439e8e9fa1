#include "operator/local/log_store.h"

#include <algorithm>
#include <cstdio>

#include "operator/api/types.h"

namespace tj {

std::string log_line(const LogEntry& entry, bool timestamps) {
  if (!timestamps) return entry.text;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(entry.time);
  char fraction[16];
  std::snprintf(fraction, sizeof fraction, ".%09lld",
                static_cast<long long>((entry.time - seconds).count()));
  std::string stamp = format_time(seconds);
  return stamp.insert(stamp.size() - 1, fraction) + " " + entry.text;
}

void LogStore::append(const LogKey& key, LogEntry entry) {
  Log& log = logs_[key];
  log.entries.push_back(std::move(entry));
  if (listener_) listener_(key, &log.entries.back());
}

void LogStore::end(const LogKey& key) {
  logs_[key].has_ended = true;
  if (listener_) listener_(key, nullptr);
}

void LogStore::forget(const LogKey& key) {
  if (logs_.erase(key) > 0 && listener_) listener_(key, nullptr);
}

void LogStore::rotate(const LogKey& key) { logs_[key].entries.clear(); }

bool LogStore::has_ended(const LogKey& key) const {
  const auto found = logs_.find(key);
  return found != logs_.end() && found->second.has_ended;
}

std::vector<std::string> LogStore::read(const LogKey& key, const LogOptions& options) const {
  std::vector<std::string> lines;
  const auto found = logs_.find(key);
  if (found == logs_.end()) return lines;
  const auto since = parse_time(options.since_time);
  for (const LogEntry& entry : found->second.entries) {
    if (!since || entry.time >= *since) lines.push_back(log_line(entry, options.timestamps));
  }
  if (options.tail_lines && static_cast<std::int64_t>(lines.size()) > *options.tail_lines)
    lines.erase(lines.begin(), lines.end() - *options.tail_lines);
  return lines;
}

}  // namespace tj
