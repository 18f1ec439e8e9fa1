// The kubelet's last act for the pods of stand-in nodes: a pod that is asked to end is removed.
// kwok does it by name alone, and now and then hits the pod that has just come under the same name;
// this binds it to the uid, as a kubelet does.
//
//   pod_reaper KUBECONFIG      runs until it is killed
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "operator/kube/kube_config.h"
#include "operator/kube/rest_kube_api.h"
#include "operator/loop/tracked_api.h"
#include "operator/loop/watch_driver.h"

namespace tj {
namespace {
using nlohmann::json;

constexpr std::size_t kAtOnceMax = 16;

/// The removal of a pod that is on its way out of a node.
std::optional<Request> removal(const json& pod) {
  const json& meta = pod.at("metadata");
  if (!meta.contains("deletionTimestamp")) return std::nullopt;
  const json options{{"kind", "DeleteOptions"},
                     {"apiVersion", "v1"},
                     {"gracePeriodSeconds", 0},
                     {"preconditions", {{"uid", meta.at("uid")}}}};
  return Request{.verb = Verb::remove,
                 .resource = Resource::pods,
                 .ns = meta.at("namespace"),
                 .name = meta.at("name"),
                 .body = options.dump()};
}

int run(const KubeConfig& config) {
  boost::asio::io_context loop{1};
  RestKubeApi api(config,
                  [&](std::function<void()> work) { boost::asio::post(loop, std::move(work)); });
  Alarm alarm(loop, std::chrono::steady_clock::now);
  // A pod that has gone meanwhile needs no removal: answers are not looked at.
  TrackedApi window(api, kAtOnceMax);
  const auto look = [&](const json& pod) {
    if (auto request = removal(pod))
      window.send(*std::move(request), [](const Result<std::string>&) {});
  };
  const auto learn = [&](const WatchDelta& delta) {
    if (const auto* upsert = std::get_if<Upsert>(&delta)) look(*upsert->object);
    if (const auto* list = std::get_if<Replace>(&delta)) {
      for (const std::string& object : list->objects) look(json::parse(object));
    }
  };
  WatchDriver watch(api, alarm, {.resource = Resource::pods, .ns = "", .label_selector = ""},
                    {.on_delta = learn,
                     .on_relist = [](const std::string&) {},
                     .on_problem = [](const std::optional<Error>&) {}});
  watch.start();
  const auto busy = boost::asio::make_work_guard(loop);
  loop.run();
  return 0;
}

}  // namespace
}  // namespace tj

int main(int argc, char** argv) {
  const auto config = tj::load_kube_config({.kubeconfig = argc == 2 ? argv[1] : "",
                                            .context = "",
                                            .env = [](const char*) { return ""; }});
  if (config) return tj::run(*config);
  std::fprintf(stderr, "pod_reaper: %s\n", tj::describe(config.error()).c_str());
  return 1;
}
