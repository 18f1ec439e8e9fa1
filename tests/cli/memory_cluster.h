// A session with the API server in memory, for the tests of commands.
#pragma once
#include <memory>
#include <optional>

#include "cli/cluster/session.h"
#include "operator/api/validate.h"
#include "operator/local/memory_api.h"

namespace tj {

struct MemoryCluster {
  MemoryApi* api = nullptr;
  std::optional<RequestFault> fault;
  Session session{[this](Session::Post post) -> std::unique_ptr<KubeApi> {
                    auto made = std::make_unique<MemoryApi>(
                        std::move(post), [] { return TimePoint{}; },
                        ObjectStoreOptions{.validate_job = [](const nlohmann::json& job) {
                          return describe(validate_manifest(job));
                        }});
                    api = made.get();
                    return made;
                  },
                  "team"};

  std::size_t count(Resource resource) { return api->objects().objects(resource).size(); }
  /// What was posted (the garbage collection) runs.
  void settle() {
    session.loop().restart();
    session.loop().poll();
  }
  void fail_call(int number, RequestFault::Kind kind, Code code) {
    api->set_request_fault([=, calls = 0](const Request&) mutable -> std::optional<RequestFault> {
      if (calls++ != number) return std::nullopt;
      return RequestFault{kind, {code, "no", "", {}}};
    });
  }
  void fail_calls_from(int number, Code code) {
    api->set_request_fault([=, calls = 0](const Request&) mutable -> std::optional<RequestFault> {
      if (calls++ < number) return std::nullopt;
      return RequestFault{RequestFault::Kind::fail_before, {code, "no", "", {}}};
    });
  }
};

}  // namespace tj
