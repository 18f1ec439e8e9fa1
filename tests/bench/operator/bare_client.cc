// The yardstick of the benchmark: creates the Services and pods that the operator would create for
// the given jobs, over the same client, with nothing around it: no watch, no decision, no status,
// no owner. What it reaches is what the API server gives to anybody.
//
//   bare_client KUBECONFIG CONNECTIONS create     creates all
//   bare_client KUBECONFIG CONNECTIONS restart    deletes all pods, creates each when it is gone
//
// Reads one line from standard input, a JSON array of TrainingJobs; prints "ready" with its
// connections open; begins at the next line; prints the seconds it took, or why it failed.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "contract/names.h"
#include "operator/api/json.h"
#include "operator/kube/kube_config.h"
#include "operator/kube/rest_kube_api.h"
#include "operator/loop/tracked_api.h"
#include "operator/plan/manifest.h"

namespace tj {
namespace {
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kConnectionsMax = 256;
constexpr const char* kLabel = "example.com/trainingjob";
constexpr std::chrono::seconds kWatchTimeout{3000};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "bare_client: %s\n", why.c_str());
  std::exit(1);
}

struct Bodies {
  std::vector<std::string> services;
  std::map<std::string, std::string> pods;  // by name
};

/// As the operator makes it, but nobody's: the owner garbage collection would delete it, and a
/// running operator would watch it.
std::string disown(json object) {
  object["metadata"].erase("ownerReferences");
  std::string text = object.dump();
  const std::string label = names::kLabelTrainingJob;
  for (auto at = text.find(label); at != std::string::npos; at = text.find(label, at)) {
    text.replace(at, label.size(), kLabel);
  }
  return text;
}

Bodies make_bodies(const json& jobs) {
  Bodies bodies;
  for (const json& object : jobs) {
    const auto job = job_from_json(object);
    if (!job) fail(describe(job.error()));
    bodies.services.push_back(disown(make_service(*job)));
    for (int index = 0; index < job->spec.worker_count; ++index) {
      const json pod = make_pod(*job, {.worker_index = index, .attempt = 0});
      bodies.pods[pod["metadata"]["name"]] = disown(pod);
    }
  }
  return bodies;
}

class BareClient {
 public:
  BareClient(const KubeConfig& config, std::size_t connections)
      : connections_(connections),
        api_(config, [this](std::function<void()> work) { boost::asio::post(loop_, work); }),
        window_(api_, connections) {}

  /// One request on each connection, so that none is opened while the clock runs. Returns the
  /// version of the pods.
  std::string warm_up(const std::string& ns) {
    ns_ = ns;
    for (std::size_t i = 0; i < connections_; ++i) {
      send({.verb = Verb::list, .resource = Resource::pods, .ns = ns});
    }
    run();
    return json::parse(last_answer_).at("metadata").at("resourceVersion");
  }

  void create(const Bodies& bodies) {
    for (const auto& body : bodies.services) send(creation(Resource::services, body));
    for (const auto& [name, body] : bodies.pods) send(creation(Resource::pods, body));
    run();
  }

  void restart(const std::map<std::string, std::string>& bodies, const std::string& version) {
    still_to_go_ = bodies.size();
    version_ = version;
    watch(bodies);
    for (const auto& [name, body] : bodies) {
      send({.verb = Verb::remove, .resource = Resource::pods, .ns = ns_, .name = name});
    }
    run();
    stream_.reset();
  }

 private:
  void send(Request request) {
    window_.send(std::move(request), [this](const Result<std::string>& answer) { note(answer); });
  }

  Request creation(Resource resource, const std::string& body) const {
    return {.verb = Verb::create, .resource = resource, .ns = ns_, .body = body};
  }

  /// A server ends the watch of one that does not keep up; it goes on where it was.
  void watch(const std::map<std::string, std::string>& bodies) {
    const auto again = [this, &bodies](const Result<void>& end) {
      if (!end) fail(describe(end.error()));
      boost::asio::post(loop_, [this, &bodies] { watch(bodies); });
    };
    stream_ = api_.watch(
        {.resource = Resource::pods,
         .ns = ns_,
         .label_selector = "",
         .resource_version = version_,
         .timeout = kWatchTimeout},
        {.on_line = [&](const std::string& line) { look(line, bodies); }, .on_end = again});
  }

  void look(const std::string& line, const std::map<std::string, std::string>& bodies) {
    const std::string field = R"("resourceVersion":")";
    const std::size_t at = line.find(field) + field.size();
    version_ = line.substr(at, line.find('"', at) - at);
    if (!line.starts_with(R"({"type":"DELETED")")) return;
    const auto found = bodies.find(json::parse(line)["object"]["metadata"]["name"]);
    if (found == bodies.end()) return;
    --still_to_go_;
    send(creation(Resource::pods, found->second));
  }

  void note(const Result<std::string>& answer) {
    if (!answer) fail(describe(answer.error()));
    last_answer_ = *answer;
    if (window_.is_idle() && still_to_go_ == 0) loop_.stop();
  }

  void run() {
    loop_.restart();
    loop_.run();
  }

  const std::size_t connections_;
  boost::asio::io_context loop_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> busy_{
      loop_.get_executor()};
  RestKubeApi api_;
  TrackedApi window_;
  std::unique_ptr<WatchStream> stream_;
  std::string ns_;
  std::string version_;  // up to which the pods were seen
  std::string last_answer_;
  std::size_t still_to_go_ = 0;
};

int run(const std::string& kubeconfig, std::size_t connections, const std::string& mode) {
  const auto config = load_kube_config(
      {.kubeconfig = kubeconfig, .context = "", .env = [](const char*) { return ""; }});
  if (!config) fail(describe(config.error()));
  std::string line;
  std::getline(std::cin, line);
  const json jobs = json::parse(line);
  const auto bodies = make_bodies(jobs);

  BareClient client(*config, connections);
  const std::string version = client.warm_up(jobs.at(0).at("metadata").at("namespace"));
  std::puts("ready");
  std::fflush(stdout);
  std::getline(std::cin, line);

  const auto began = Clock::now();
  if (mode == "create") client.create(bodies);
  if (mode == "restart") client.restart(bodies.pods, version);
  std::printf("%.3f\n", std::chrono::duration<double>(Clock::now() - began).count());
  return 0;
}

}  // namespace
}  // namespace tj

int main(int argc, char** argv) {
  const std::string mode = argc == 4 ? argv[3] : "";
  const std::size_t connections = argc == 4 ? std::strtoul(argv[2], nullptr, 10) : 0;
  const bool is_usable = (mode == "create" || mode == "restart") && connections >= 1 &&
                         connections <= tj::kConnectionsMax;
  if (!is_usable) tj::fail("usage: bare_client KUBECONFIG CONNECTIONS create|restart");
  return tj::run(argv[1], connections, mode);
}
