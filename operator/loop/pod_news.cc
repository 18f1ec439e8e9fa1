#include "operator/loop/pod_news.h"

#include <nlohmann/json.hpp>

namespace tj {
namespace {
using nlohmann::json;

std::string text_at(const json& object, const char* pointer) {
  const json::json_pointer path(pointer);
  if (!object.contains(path) || !object.at(path).is_string()) return {};
  return object.at(path).get<std::string>();
}

/// Whoever wrote the event chose where to say when it was last seen.
TimePoint last_seen(const json& event) {
  for (const char* place : {"/series/lastObservedTime", "/lastTimestamp", "/eventTime",
                            "/metadata/creationTimestamp"}) {
    if (const auto time = parse_time(text_at(event, place))) return *time;
  }
  return {};
}

}  // namespace

std::optional<PodNews> newest_warning(const std::string& event_list, const std::string& pod_uid) {
  const json list = json::parse(event_list, nullptr, false);
  if (!list.is_object() || !list.contains("items") || !list["items"].is_array()) return {};
  const json* newest = nullptr;
  for (const json& event : list["items"]) {
    const bool is_about_it = text_at(event, "/involvedObject/uid") == pod_uid;
    if (!is_about_it || text_at(event, "/type") != "Warning") continue;
    if (newest == nullptr || last_seen(*newest) <= last_seen(event)) newest = &event;
  }
  if (newest == nullptr) return {};
  return PodNews{pod_uid, text_at(*newest, "/reason"), text_at(*newest, "/message")};
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
