#include "operator/loop/pod_news.h"

#include <nlohmann/json.hpp>

#include "operator/api/read.h"

namespace tj {
namespace {
using namespace read;

/// Whoever wrote the event chose where to say when it was last seen.
TimePoint last_seen(const json& event) {
  for (const auto& time :
       {time_at(object_at(event, "series"), "lastObservedTime"), time_at(event, "lastTimestamp"),
        time_at(event, "eventTime"), time_at(object_at(event, "metadata"), "creationTimestamp")}) {
    if (time) return *time;
  }
  return {};
}

}  // namespace

std::optional<PodNews> newest_warning(const std::string& event_list, const std::string& pod_uid) {
  const json list = parse(event_list);
  const json* newest = nullptr;
  for (const json& event : array_at(list, "items")) {
    const bool is_about_it = string_at(object_at(event, "involvedObject"), "uid") == pod_uid;
    if (!is_about_it || string_at(event, "type") != "Warning") continue;
    if (newest == nullptr || last_seen(*newest) <= last_seen(event)) newest = &event;
  }
  if (newest == nullptr) return {};
  return PodNews{pod_uid, string_at(*newest, "reason"), string_at(*newest, "message")};
}

std::optional<PodNews> PodNewsReader::of(const ObjectMeta& job) const {
  const auto found = jobs_.find(job.key());
  const bool is_known = found != jobs_.end() && found->second.uid == job.uid;
  return is_known ? found->second.news : std::nullopt;
}

void PodNewsReader::ask(const ObjectMeta& job, const ObjectMeta& pod) {
  if (in_flight_ >= kAsksInFlightMax) return;
  Job& asking = jobs_[job.key()];
  if (asking.uid != job.uid) asking = {.uid = job.uid, .news = {}};
  if (alarm_.now() < asking.next_ask) return;
  asking.next_ask = alarm_.now() + kAskInterval;
  ++in_flight_;
  Request request{.verb = Verb::list,
                  .resource = Resource::events,
                  .ns = pod.ns,
                  .field_selector = "involvedObject.name=" + pod.name +
                                    ",involvedObject.uid=" + pod.uid + ",type=Warning",
                  .limit = kEventsMax};
  api_.send(std::move(request), [this, job, pod_uid = pod.uid](const Result<std::string>& answer) {
    --in_flight_;
    take(job, answer ? newest_warning(*answer, pod_uid) : std::nullopt);
  });
}

void PodNewsReader::take(const ObjectMeta& job, std::optional<PodNews> news) {
  const auto asked = jobs_.find(job.key());
  const bool is_wanted = asked != jobs_.end() && asked->second.uid == job.uid;
  if (!is_wanted || asked->second.news == news) return;
  asked->second.news = std::move(news);
  wake_(job.key());
}

}  // namespace tj
