#include "tests/sim/sabotage.h"

#include <map>
#include <nlohmann/json.hpp>

namespace tj::sim {
namespace {

using Json = nlohmann::json;

/// Changes what goes out, and nothing else.
class Rewriter final : public KubeApi {
 public:
  using Rewrite = std::function<void(Request&)>;
  Rewriter(KubeApi& api, Rewrite rewrite) : api_(api), rewrite_(std::move(rewrite)) {}
  void send(Request request, Done done) override {
    rewrite_(request);
    api_.send(std::move(request), std::move(done));
  }
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override {
    return api_.watch(std::move(request), std::move(handler));
  }

 private:
  KubeApi& api_;
  Rewrite rewrite_;
};

void forget_uid(Request& request) {
  if (request.verb == Verb::remove) request.body.clear();
}

void forget_version(Request& request) {
  if (request.verb != Verb::patch_status) return;
  Json patch = Json::parse(request.body);
  patch.erase("metadata");
  request.body = patch.dump();
}

/// Says of a status that it is written, and writes it after the next deletion.
class LateWriter final : public KubeApi {
 public:
  explicit LateWriter(KubeApi& api) : api_(api) {}
  void send(Request request, Done done) override {
    if (request.verb == Verb::patch_status) {
      const bool is_verdict = request.body != last_ && !late_;
      last_ = request.body;
      if (is_verdict) return put_off(std::move(request), std::move(done));
    }
    const bool is_removal = request.verb == Verb::remove;
    api_.send(std::move(request), std::move(done));
    if (is_removal && late_) api_.send(*std::exchange(late_, std::nullopt), [](const auto&) {});
  }
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override {
    return api_.watch(std::move(request), std::move(handler));
  }

 private:
  /// The answer is the live job with the patch in it, as a server would give it.
  void put_off(Request request, Done done) {
    Request read{
        .verb = Verb::get, .resource = request.resource, .ns = request.ns, .name = request.name};
    const Json patch = Json::parse(request.body);
    late_ = std::move(request);
    api_.send(std::move(read), [patch, done](Result<std::string> live) {
      if (!live) return done(std::move(live));
      Json job = Json::parse(*live);
      const auto version = std::stoull(job["metadata"]["resourceVersion"].get<std::string>());
      job["status"].merge_patch(patch["status"]);
      job["metadata"]["resourceVersion"] = std::to_string(version + 1);
      done(job.dump());
    });
  }

  KubeApi& api_;
  std::string last_;
  std::optional<Request> late_;
};

/// Keeps the counters of a status to itself, and believes what it keeps.
class MemoryCounter final : public KubeApi {
 public:
  explicit MemoryCounter(KubeApi& api) : api_(api) {}
  void send(Request request, Done done) override {
    if (request.verb == Verb::patch_status) keep_counts(request);
    const bool is_list = request.verb == Verb::list;
    const bool is_job = request.resource == Resource::training_jobs;
    if (!is_job) return api_.send(std::move(request), std::move(done));
    api_.send(std::move(request), [this, is_list, done](Result<std::string> answer) {
      if (!answer) return done(std::move(answer));
      Json body = Json::parse(*answer);
      if (is_list) {
        for (Json& item : body["items"]) add_counts(item);
      } else {
        add_counts(body);
      }
      done(body.dump());
    });
  }
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override {
    if (request.resource == Resource::training_jobs) {
      handler.on_line = [this, pass = std::move(handler.on_line)](const std::string& line) {
        Json event = Json::parse(line);
        add_counts(event["object"]);
        pass(event.dump());
      };
    }
    return api_.watch(std::move(request), std::move(handler));
  }

 private:
  void keep_counts(Request& request) {
    Json patch = Json::parse(request.body);
    for (const char* field : {"attempt", "restarts", "restartsCounted"}) {
      if (!patch["status"].contains(field)) continue;
      counts_[request.ns + "/" + request.name][field] = patch["status"][field];
      patch["status"].erase(field);
    }
    request.body = patch.dump();
  }
  void add_counts(Json& job) {
    if (!job.contains("metadata")) return;
    const Json& meta = job["metadata"];
    const auto known = counts_.find(meta.value("namespace", "") + "/" + meta.value("name", ""));
    if (known != counts_.end()) job["status"].merge_patch(known->second);
  }

  KubeApi& api_;
  std::map<std::string, Json> counts_;  // by job
};

/// Is never told that a job is gone.
class DeafToEnds final : public KubeApi {
 public:
  explicit DeafToEnds(KubeApi& api) : api_(api) {}
  void send(Request request, Done done) override { api_.send(std::move(request), std::move(done)); }
  std::unique_ptr<WatchStream> watch(WatchRequest request, WatchHandler handler) override {
    if (request.resource == Resource::training_jobs) {
      handler.on_line = [pass = std::move(handler.on_line)](const std::string& line) {
        if (Json::parse(line)["type"] != "DELETED") pass(line);
      };
    }
    return api_.watch(std::move(request), std::move(handler));
  }

 private:
  KubeApi& api_;
};

}  // namespace

const char* to_string(Bug bug) {
  switch (bug) {
    case Bug::none: return "none";
    case Bug::deletes_by_name: return "deletes-by-name";
    case Bug::writes_blindly: return "writes-blindly";
    case Bug::deletes_too_early: return "deletes-too-early";
    case Bug::counts_in_memory: return "counts-in-memory";
    case Bug::misses_the_end: return "misses-the-end";
  }
  return "none";
}

std::optional<Bug> parse_bug(const std::string& text) {
  for (const Bug bug : kBugs) {
    if (text == to_string(bug)) return bug;
  }
  return std::nullopt;
}

std::unique_ptr<KubeApi> sabotage(Bug bug, KubeApi& api) {
  switch (bug) {
    case Bug::none: return nullptr;
    case Bug::deletes_by_name: return std::make_unique<Rewriter>(api, forget_uid);
    case Bug::writes_blindly: return std::make_unique<Rewriter>(api, forget_version);
    case Bug::deletes_too_early: return std::make_unique<LateWriter>(api);
    case Bug::counts_in_memory: return std::make_unique<MemoryCounter>(api);
    case Bug::misses_the_end: return std::make_unique<DeafToEnds>(api);
  }
  return nullptr;
}

}  // namespace tj::sim
