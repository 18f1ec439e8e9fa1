#include "cli/ui/site.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/ui/reply.h"
#include "contract/launch_env.h"

namespace tj::ui {
namespace {

using nlohmann::json;

constexpr int kNotFound = 404;
constexpr int kBadRequest = 400;
constexpr int kSeeOther = 303;
constexpr int kTooMany = 429;
constexpr int kRankMax = 1'000'000;
constexpr std::size_t kNameBytesMax = 253;  // of a name or a namespace
constexpr std::size_t kIdBytesMax = 64;

std::vector<std::string> segments_of(const std::string& target) {
  std::vector<std::string> segments;
  std::string_view rest = std::string_view(target).substr(0, target.find('?'));
  while (rest.starts_with('/')) {
    rest.remove_prefix(1);
    const auto end = rest.find('/');
    segments.push_back(percent_decoded(rest.substr(0, end)));
    rest = end == std::string_view::npos ? "" : rest.substr(end);
  }
  return segments;
}

bool is_name(const std::string& text) { return !text.empty() && text.size() <= kNameBytesMax; }

/// Counts the logs that are open.
class CountedStream final : public HttpStream {
 public:
  CountedStream(std::unique_ptr<HttpStream> inner, std::shared_ptr<int> count)
      : inner_(std::move(inner)), count_(std::move(count)) {
    ++*count_;
  }
  ~CountedStream() override { --*count_; }
  void next(Give give) override { inner_->next(std::move(give)); }

 private:
  std::unique_ptr<HttpStream> inner_;
  std::shared_ptr<int> count_;
};

int query_number(const HttpQuestion& question, const char* name, int fallback) {
  const std::string text = query_value(question.target, name);
  const auto number = parse_int(name, text, 0, kRankMax);
  return number ? *number : fallback;
}

}  // namespace

Route route_of(const std::string& target) {
  const auto segments = segments_of(target);
  if (segments.empty()) return Nowhere{};
  if (segments[0] != "api") {
    const auto end = target.find('?');
    const std::string path = target.substr(1, end == std::string::npos ? end : end - 1);
    return ToFile{path.empty() ? "index.html" : path};
  }
  if (segments.size() == 2 && segments[1] == "session") return ToSession{};
  if (segments.size() < 2 || segments[1] != "jobs") return Nowhere{};
  if (segments.size() == 2) return ToJobs{};
  if (segments.size() < 4 || segments.size() > 5) return Nowhere{};
  if (!is_name(segments[2]) || !is_name(segments[3])) return Nowhere{};
  const ObjectKey job{segments[2], segments[3]};
  if (segments.size() == 4) return ToJob{job};
  if (segments[4] == "series") return ToSeries{job};
  if (segments[4] == "log") return ToLog{job};
  return Nowhere{};
}

HttpReply Site::answer(const HttpQuestion& question, const Gate& gate) {
  const Verdict verdict = judge(question, gate);
  HttpReply reply;
  if (verdict.entry == Entry::refused) {
    reply = {.status = verdict.status, .body = verdict.why + "\n"};
  } else if (verdict.entry == Entry::sets_cookie) {
    reply = {.status = kSeeOther, .body = "go on at /\n"};
    reply.headers = {{"Location", "/"}, {"Set-Cookie", cookie_header(gate)}};
  } else {
    reply = answer_allowed(question);
  }
  add_safe_headers(reply);
  return reply;
}

HttpReply Site::answer_allowed(const HttpQuestion& question) {
  const Route route = route_of(question.target);
  if (const auto* to = std::get_if<ToFile>(&route)) return page_file(to->path);
  if (std::holds_alternative<ToSession>(route)) return document({{"sign_in", false}});
  if (std::holds_alternative<ToJobs>(route)) return jobs();
  if (const auto* to = std::get_if<ToJob>(&route)) return job(question, to->job);
  if (const auto* to = std::get_if<ToSeries>(&route)) return series(to->job);
  if (const auto* to = std::get_if<ToLog>(&route)) return log(question, to->job);
  return failure(kNotFound, "there is no such document");
}

HttpReply Site::jobs() {
  feed_.look_at_all();
  json all = board_.jobs_document();
  all["source"] = feed_.name();
  all["problem"] = feed_.problem();
  all["now"] = std::chrono::duration<double>(wall_clock().time_since_epoch()).count();
  return document(all);
}

HttpReply Site::job(const HttpQuestion& question, const ObjectKey& key) {
  feed_.look_at(key);
  const RankRange ranks{.from = query_number(question, "from", 0),
                        .count = query_number(question, "count", RankRange{}.count)};
  auto one = board_.job_document(key, ranks);
  if (!one) return failure(kNotFound, "there is no job " + to_string(key));
  (*one)["source"] = feed_.name();
  (*one)["problem"] = feed_.problem();
  (*one)["now"] = std::chrono::duration<double>(wall_clock().time_since_epoch()).count();
  return document(*one);
}

HttpReply Site::series(const ObjectKey& key) {
  feed_.look_at(key);
  const auto all = board_.series_document(key);
  return all ? document(*all) : failure(kNotFound, "there is no job " + to_string(key));
}

HttpReply Site::log(const HttpQuestion& question, const ObjectKey& key) {
  const TrainingJob* known = board_.find(key);
  if (known == nullptr) return failure(kNotFound, "there is no job " + to_string(key));
  if (*logs_ >= kLogsMax)
    return failure(kTooMany, std::to_string(kLogsMax) + " logs are open: close one of them");
  LogQuestion asked{.job = key,
                    .rank = query_number(question, "rank", 0),
                    .attempt = query_number(question, "attempt", known->status.attempt),
                    .last_id = {}};
  const auto ids = question.values_of("last-event-id");
  if (ids.size() > 1 || (ids.size() == 1 && ids[0].size() > kIdBytesMax))
    return failure(kBadRequest, "Last-Event-ID is none of ours");
  if (!ids.empty()) asked.last_id = std::string(ids[0]);
  auto stream = feed_.open_log(asked);
  if (!stream) return failure(kNotFound, "there is no log of this rank");
  HttpReply reply{.content_type = "text/event-stream; charset=utf-8"};
  // To nginx, and Ingress controllers that are made of it: pass on at once what comes.
  reply.headers = {{"X-Accel-Buffering", "no"}};
  reply.stream = std::make_unique<CountedStream>(std::move(stream), logs_);
  return reply;
}

}  // namespace tj::ui
