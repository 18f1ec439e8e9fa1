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

void PodNewsReader::ask(const Pod& pod, Done done) {
  if (in_flight_ >= kAsksInFlightMax) return;
  ++in_flight_;
  Request request{.verb = Verb::list,
                  .resource = Resource::events,
                  .ns = pod.meta.ns,
                  .field_selector = "involvedObject.name=" + pod.meta.name +
                                    ",involvedObject.uid=" + pod.meta.uid + ",type=Warning",
                  .limit = kEventsMax};
  api_.send(std::move(request),
            [this, uid = pod.meta.uid, done = std::move(done)](const Result<std::string>& answer) {
              --in_flight_;
              done(answer ? newest_warning(*answer, uid) : std::nullopt);
            });
}

}  // namespace tj
