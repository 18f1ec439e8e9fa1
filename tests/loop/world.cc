#include "tests/loop/world.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <map>

#include "operator/api/read.h"

namespace tj {
namespace {
using nlohmann::json;

constexpr const char* kNamespace = "default";
constexpr int kTurnsMax = 200'000;  // of one settle: more is a loop that never rests

/// Empty where there is no text: a template may hold anything.
std::string text_at(const json& object, const char* section, const char* key) {
  return read::string_at(read::object_at(object, section), key);
}

json pod_status(const char* phase, const json& state) {
  const bool is_ready = state.contains("running");
  return {{"status",
           {{"phase", phase},
            {"containerStatuses",
             json::array({{{"name", "main"}, {"ready", is_ready}, {"state", state}}})}}}};
}

}  // namespace

void FakeProgress::fetch(const ProgressTarget& target, Done done) {
  ++asked;
  last_target = target;
  const auto found = answers_.find(target.ip);
  const PollAnswer answer =
      found == answers_.end() ? PollAnswer{PollResult::refused, {}} : found->second();
  boost::asio::post(loop_, [done = std::move(done), answer] { done(answer); });
}

void FakeProgress::answer(const std::string& job, Answer answer) {
  answers_["ip-of-" + job + "-worker-0"] = std::move(answer);
}

void FakeProgress::say(const std::string& job, const Progress& document) {
  answer(job, [document] { return PollAnswer{PollResult::read, document}; });
}

void FakeProgress::fail(const std::string& job, PollResult result) {
  answer(job, [result] { return PollAnswer{result, {}}; });
}

World::World() {
  spdlog::set_level(spdlog::level::off);
  const auto post = [this](std::function<void()> work) {
    boost::asio::post(loop_, std::move(work));
  };
  api_ = std::make_unique<MemoryApi>(post, [this] { return wall_now(); });
  options_.requests_in_flight_max = 4;
  options_.operator_ns = "operators";
  options_.now = [this] { return wall_now(); };
  options_.steady_now = [this] { return steady_; };
}

World::~World() = default;

TimePoint World::wall_now() const {
  const TimePoint start = *parse_time("2026-11-21T00:00:00Z");
  return start + std::chrono::duration_cast<std::chrono::milliseconds>(steady_.time_since_epoch());
}

std::optional<std::chrono::steady_clock::time_point> World::next_wake() const {
  auto next = controller_ ? controller_->next_wake() : std::nullopt;
  for (const auto& [who, sleeper] : sleepers_) {
    const auto wake = sleeper.next_wake();
    if (wake && (!next || *wake < *next)) next = wake;
  }
  return next;
}

void World::wake() {
  if (controller_) controller_->wake();
  for (const auto& [who, sleeper] : sleepers_) sleeper.wake();
}

void World::start_controller() {
  controller_ = std::make_unique<Controller>(loop_, *api_, metrics_, options_);
  controller_->start();
}

void World::restart_controller() {
  stop_controller();
  start_controller();
}

void World::create_job(const std::string& name, int worker_count, json spec,
                       const std::string& ns) {
  const json container{{"name", "main"}, {"image", "busybox"}};
  const json pod_template{{"spec", {{"containers", json::array({container})}}}};
  spec["replicaSpecs"]["Worker"] = {{"replicas", worker_count}, {"template", pod_template}};
  spec["runPolicy"].emplace("restartBackoffSeconds", 0);
  const json manifest{{"apiVersion", "kubebrain.io/v1"},
                      {"kind", "TrainingJob"},
                      {"metadata", {{"name", name}, {"namespace", ns}}},
                      {"spec", spec}};
  const auto created = objects().create(Resource::training_jobs, ns, manifest);
  TJ_CHECK(created.ok(), name);
}

void World::add_node(const std::string& name) {
  const json node{{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}};
  TJ_CHECK(objects().create(Resource::nodes, "", node).ok(), name);
  set_node_ready(name, "True");
}

void World::set_node_ready(const std::string& name, const char* status) {
  const json condition{{"type", "Ready"},
                       {"status", status},
                       {"lastTransitionTime", format_time(wall_now() + cluster_skew_)}};
  const json patch{{"status", {{"conditions", json::array({condition})}}}};
  TJ_CHECK(objects().patch_status(Resource::nodes, {"", name}, patch).ok(), name);
}

void World::node_heartbeat(const std::string& name) {
  const json patch{{"status", {{"heartbeats", ++heartbeats_}}}};
  TJ_CHECK(objects().patch_status(Resource::nodes, {"", name}, patch).ok(), name);
}

void World::silence_node(const std::string& name) {
  silent_nodes_.insert(name);
  kubelet_rests_at_.reset();
  set_node_ready(name, "Unknown");
}

void World::place_pod(const std::string& name, const std::string& node) {
  TJ_CHECK(objects().bind_pod({kNamespace, name}, node).ok(), name);
}

void World::start_pod(const std::string& name) {
  json status = pod_status("Running", {{"running", json::object()}});
  status["status"]["podIP"] = "ip-of-" + name;
  const auto done = objects().patch_status(Resource::pods, {kNamespace, name}, status);
  TJ_CHECK(done.ok(), name);
}

void World::end_pod(const std::string& name, int exit_code) {
  const json terminated{{"exitCode", exit_code},
                        {"reason", exit_code == 0 ? "Completed" : "Error"},
                        {"finishedAt", format_time(wall_now() + cluster_skew_)}};
  const auto done = objects().patch_status(
      Resource::pods, {kNamespace, name},
      pod_status(exit_code == 0 ? "Succeeded" : "Failed", {{"terminated", terminated}}));
  TJ_CHECK(done.ok(), name);
}

void World::kubelet_step() {
  bool all_run = true;
  for (const json& pod : objects().objects(Resource::pods)) {
    if (silent_nodes_.contains(text_at(pod, "spec", "nodeName"))) continue;
    if (pod["metadata"].contains("deletionTimestamp")) {
      if (keeps_terminating_pods_) continue;
      (void)objects().finish_delete(key_of(pod), text_at(pod, "metadata", "uid"));
      continue;
    }
    const bool is_pending = text_at(pod, "status", "phase") == "Pending";
    if (is_pending && kubelet_ != Kubelet::idle) start_pod(text_at(pod, "metadata", "name"));
    if (is_pending) all_run = false;
  }
  if (kubelet_ != Kubelet::runs_pods_to_the_end || !all_run) return;
  std::map<std::string, std::string> phases;  // of jobs, each read once: a pod's end changes none
  for (const json& pod : objects().objects(Resource::pods)) {
    if (text_at(pod, "status", "phase") != "Running") continue;
    const std::string job_name = pod["metadata"]["labels"].value("job-name", "");
    const auto [found, is_new] = phases.try_emplace(job_name);
    if (is_new) found->second = phase(job_name);
    if (found->second == "Running") end_pod(text_at(pod, "metadata", "name"), 0);
  }
}

void World::settle() {
  std::uint64_t version_before = 0;
  do {
    version_before = objects().version();
    for (int turns = 0; loop_.poll_one() != 0; ++turns) {
      TJ_CHECK(turns < kTurnsMax, "the loop never rests");
      if (std::exchange(restart_is_due_, false)) restart_controller();
    }
    loop_.restart();
    if (kubelet_rests_at_ != objects().version()) {
      const auto version = objects().version();
      kubelet_step();
      if (objects().version() == version) kubelet_rests_at_ = version;
    }
  } while (objects().version() != version_before);
}

void World::pass(std::chrono::milliseconds duration) {
  const auto end = steady_ + duration;
  pass_until([&] { return steady_ >= end; }, duration);
  steady_ = std::max(steady_, end);
  settle();
}

bool World::pass_until(const std::function<bool()>& reached, std::chrono::milliseconds limit) {
  const auto end = steady_ + limit;
  for (;;) {
    settle();
    if (reached()) return true;
    const auto next = next_wake();
    if (!next || *next > end) return false;
    steady_ = std::max(steady_, *next);
    wake();
  }
}

json World::get(Resource resource, const std::string& name) {
  auto object = objects().get(resource, {kNamespace, name});
  return object ? *std::move(object) : json(nullptr);
}

std::string World::phase(const std::string& name) { return text_at(job(name), "status", "phase"); }

std::string World::reason(const std::string& name) {
  return text_at(job(name), "status", "reason");
}

std::vector<std::string> World::pod_names() {
  std::vector<std::string> names;
  for (const json& pod : objects().objects(Resource::pods)) {
    names.push_back(text_at(pod, "metadata", "name"));
  }
  return names;
}

std::vector<std::string> World::event_reasons() {
  std::vector<std::string> reasons;
  for (const json& event : objects().objects(Resource::events)) {
    reasons.push_back(read::string_at(event, "reason"));
  }
  std::sort(reasons.begin(), reasons.end());
  return reasons;
}

int World::requests(const std::string& prefix) const {
  const auto& log = api_->request_log();
  return static_cast<int>(std::count_if(
      log.begin(), log.end(), [&](const std::string& line) { return line.starts_with(prefix); }));
}

int World::writes() const { return requests("create") + requests("patch") + requests("delete"); }

}  // namespace tj
