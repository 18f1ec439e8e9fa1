// The tables of `tj list` and `tj events`.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/jobs/job_text.h"
#include "cli/jobs/job_words.h"
#include "cli/jobs/table.h"
#include "operator/api/read.h"

namespace tj {
namespace {

using namespace job_words;

std::string event_time(const nlohmann::json& event) {
  for (const char* name : {"lastTimestamp", "eventTime", "firstTimestamp"}) {
    if (std::string time = read::string_at(event, name); !time.empty()) return time;
  }
  return read::string_at(read::object_at(event, "metadata"), "creationTimestamp");
}

}  // namespace

std::string list_text(const std::vector<JobView>& views, const ListStyle& style) {
  Row head = {"NAME", "PHASE", "READY", "PROGRESS", "ATTEMPT", "RESTARTS", "REASON", "AGE"};
  if (style.wide) head.insert(head.end(), {"ETA", "LOSS", "TOKENS/S", "MESSAGE"});
  if (style.with_namespace) head.insert(head.begin(), "NAMESPACE");
  std::vector<Row> rows = {head};
  for (const JobView& view : views) {
    const JobStatus& status = view.job.status;
    Row row = {view.job.meta.name,
               phase_text(view),
               ready(view),
               progress(view),
               std::to_string(status.attempt),
               std::to_string(status.restarts),
               reason(view),
               ago(view.job.meta.creation_time, view.now)};
    if (style.wide) {
      const bool has_rate = status.progress && status.progress->tokens_per_second;
      row.insert(row.end(), {eta(view), loss(view),
                             has_rate ? number_text(*status.progress->tokens_per_second) : "",
                             status.message});
    }
    if (style.with_namespace) row.insert(row.begin(), view.job.meta.ns);
    rows.push_back(std::move(row));
  }
  return table_text(rows);
}

std::string events_text(const std::vector<nlohmann::json>& events, TimePoint now) {
  std::vector<Row> rows = {{"LAST", "TYPE", "REASON", "OBJECT", "MESSAGE"}};
  for (const nlohmann::json& event : events) {
    const auto& about = read::object_at(event, "involvedObject");
    std::string kind = read::string_at(about, "kind");
    std::transform(kind.begin(), kind.end(), kind.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const int count = read::number_at(event, "count", 1);
    const std::string age = ago(parse_time(event_time(event)), now);
    rows.push_back({count > 1 ? age + " (" + std::to_string(count) + " times)" : age,
                    read::string_at(event, "type"), read::string_at(event, "reason"),
                    kind + "/" + read::string_at(about, "name"),
                    read::string_at(event, "message")});
  }
  return rows.size() > 1 ? table_text(rows) : "no events\n";
}

}  // namespace tj
