// Jobs in an API server in memory, behind the session that the commands ask; and what a command has
// said. Nothing is asked twice unless a story moves the world in between.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/jobs/place.h"
#include "operator/api/json.h"
#include "operator/local/memory_api.h"

namespace tj {

/// What a command has printed, and what it exits with.
struct Told {
  int code = -1;
  std::string out;
  std::string err;
};

inline Told told(const std::function<int()>& command) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Told all{.code = command()};
  all.out = testing::internal::GetCapturedStdout();
  all.err = testing::internal::GetCapturedStderr();
  return all;
}

inline nlohmann::json job_json(const std::string& name, int workers = 2) {
  return {{"apiVersion", "kubebrain.io/v1"},
          {"kind", "TrainingJob"},
          {"metadata", {{"name", name}}},
          {"spec",
           {{"replicaSpecs",
             {{"Worker",
               {{"replicas", workers},
                {"template",
                 {{"spec", {{"containers", {{{"name", "main"}, {"image", "none"}}}}}}}}}}}}}}};
}

class JobWorld {
 public:
  static constexpr const char* kNs = "default";

  JobWorld()
      : place_(std::make_unique<Session>([this](Session::Post post) { return make(post); }, kNs)) {}

  Place& place() { return place_; }
  MemoryApi& api() { return *api_; }
  ObjectStore& objects() { return api_->objects(); }

  void add_job(const std::string& name, const nlohmann::json& status, int workers = 2) {
    const auto made = objects().create(Resource::training_jobs, kNs, job_json(name, workers));
    ASSERT_TRUE(made.ok()) << describe(made.error());
    set_status(name, status);
  }
  void set_status(const std::string& name, const nlohmann::json& status) {
    const auto put =
        objects().patch_status(Resource::training_jobs, {kNs, name}, {{"status", status}});
    ASSERT_TRUE(put.ok()) << describe(put.error());
  }
  nlohmann::json job(const std::string& name) {
    return objects().get(Resource::training_jobs, {kNs, name}).value();
  }
  /// A worker on a node, with a status as a kubelet writes it.
  void add_pod(const std::string& job_name, int rank, const nlohmann::json& status) {
    const std::string name = job_name + "-worker-" + std::to_string(rank);
    const std::string uid = job(job_name)["metadata"]["uid"];
    const nlohmann::json labels{{"job-name", job_name},
                                {"kubebrain.io/trainingjob", job_name},
                                {"kubebrain.io/worker-index", std::to_string(rank)},
                                {"kubebrain.io/attempt", "0"}};
    const nlohmann::json owner{
        {"kind", "TrainingJob"}, {"name", job_name}, {"uid", uid}, {"controller", true}};
    const nlohmann::json pod{
        {"metadata",
         {{"name", name}, {"labels", labels}, {"ownerReferences", nlohmann::json::array({owner})}}},
        {"spec", {{"containers", {{{"name", "main"}, {"image", "none"}}}}}}};
    ASSERT_TRUE(objects().create(Resource::pods, kNs, pod).ok());
    ASSERT_TRUE(objects().bind_pod({kNs, name}, "node-" + std::to_string(rank % 2)).ok());
    ASSERT_TRUE(objects().patch_status(Resource::pods, {kNs, name}, {{"status", status}}).ok());
  }

  /// Before each request, with its number from 1: the world moves while a command waits.
  void before_request(
      std::function<std::optional<Error>(const Request& request, int number)> move) {
    requests_ = 0;
    api_->set_request_fault(
        [this, move = std::move(move)](const Request& request) -> std::optional<RequestFault> {
          if (const auto error = move(request, ++requests_)) return RequestFault{.error = *error};
          return std::nullopt;
        });
  }

 private:
  std::unique_ptr<KubeApi> make(Session::Post post) {
    auto api = std::make_unique<MemoryApi>(std::move(post), [this] { return now_; });
    api_ = api.get();
    return api;
  }

  TimePoint now_ = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  MemoryApi* api_ = nullptr;
  int requests_ = 0;
  Place place_;
};

inline nlohmann::json running_status() {
  return {{"phase", "Running"},
          {"reason", "WorkersRunning"},
          {"message", "2 of 2 workers have started"},
          {"ready", "2/2"},
          {"attempt", 0}};
}

inline nlohmann::json ended_status(const std::string& phase, const std::string& reason,
                                   const std::string& message) {
  return {{"phase", phase}, {"reason", reason}, {"message", message}, {"ready", "0/2"}};
}

inline nlohmann::json pod_running() {
  return {
      {"phase", "Running"},
      {"conditions", {{{"type", "Ready"}, {"status", "True"}}}},
      {"containerStatuses",
       {{{"name", "main"}, {"ready", true}, {"state", {{"running", nlohmann::json::object()}}}}}}};
}

}  // namespace tj
