// A job with pods and logs in memory behind a Session, and steps that are taken while the session's
// loop runs: each when what it waits for is so, or the test fails at its deadline.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/logs/log_printer.h"
#include "operator/local/memory_api.h"

namespace tj {

class JobSite {
 public:
  static constexpr std::chrono::seconds kDeadline{60};
  using Json = nlohmann::json;

  JobSite()
      : session_(
            [this](Session::Post post) {
              auto api = std::make_unique<MemoryApi>(std::move(post), [] { return TimePoint{}; });
              api_ = api.get();
              return api;
            },
            "default"),
        timer_(session_.loop()),
        deadline_(std::chrono::steady_clock::now() + kDeadline) {}
  ~JobSite() {
    close(out_);
    close(notes_);
  }

  Session& session() { return session_; }
  MemoryApi& api() { return *api_; }
  LogPrinter::Target target() const { return {out_, notes_}; }
  static std::string pod_name(int rank) { return "a-worker-" + std::to_string(rank); }

  void create_job(int workers) {
    const Json worker{
        {"replicas", workers},
        {"template", {{"spec", {{"containers", Json::array({{{"name", "main"}}})}}}}}};
    const Json job{{"metadata", {{"name", "a"}}},
                   {"spec", {{"replicaSpecs", {{"Worker", worker}}}}}};
    TJ_CHECK(api().objects().create(Resource::training_jobs, "default", job).ok(), "a");
  }
  void set_status(const Json& status) {
    TJ_CHECK(api()
                 .objects()
                 .patch_status(Resource::training_jobs, {"default", "a"}, {{"status", status}})
                 .ok(),
             "a");
  }
  void set_phase(const std::string& phase, int attempt = 0) {
    set_status({{"phase", phase}, {"reason", "Test"}, {"attempt", attempt}});
  }
  void create_pod(int rank, int attempt = 0) {
    const Json labels{{"job-name", "a"},
                      {"kubebrain.io/trainingjob", "a"},
                      {"kubebrain.io/worker-index", std::to_string(rank)},
                      {"kubebrain.io/attempt", std::to_string(attempt)}};
    const Json pod{{"metadata", {{"name", pod_name(rank)}, {"labels", labels}}},
                   {"spec", {{"containers", Json::array({{{"name", "main"}}})}}}};
    TJ_CHECK(api().objects().create(Resource::pods, "default", pod).ok(), pod_name(rank));
    TJ_CHECK(api().objects().bind_pod({"default", pod_name(rank)}, "n1").ok(), pod_name(rank));
  }
  void start_pod(int rank) { set_pod(rank, "Running", {{"running", Json::object()}}); }
  void end_pod(int rank, int exit_code) {
    api().logs().end(key(rank));
    set_pod(rank, exit_code == 0 ? "Succeeded" : "Failed",
            {{"terminated", {{"exitCode", exit_code}}}});
  }
  /// It and its log are no more.
  void remove_pod(int rank) {
    api().logs().end(key(rank));
    const auto pod = api().objects().get(Resource::pods, {"default", pod_name(rank)});
    TJ_CHECK(pod.ok(), pod_name(rank));
    TJ_CHECK(api()
                 .objects()
                 .remove(Resource::pods, {"default", pod_name(rank)}, {{"gracePeriodSeconds", 0}})
                 .ok(),
             pod_name(rank));
    api().logs().forget(key(rank));
  }
  void say(int rank, const std::string& text) {
    time_ += std::chrono::milliseconds{10};
    api().logs().append(key(rank), {time_, text});
  }

  /// Once `when` holds, `then` is done; in the order of the calls.
  void step(std::function<bool()> when, std::function<void()> then) {
    steps_.push_back({std::move(when), std::move(then)});
    if (steps_.size() == 1) look();
  }
  bool has_printed(const std::string& text) const {
    return read(out_).find(text) != std::string::npos;
  }
  bool has_noted(const std::string& text) const {
    return read(notes_).find(text) != std::string::npos;
  }
  std::string printed() const { return read(out_); }
  std::string notes() const { return read(notes_); }

 private:
  struct Step {
    std::function<bool()> when;
    std::function<void()> then;
  };
  static LogKey key(int rank) {
    return {.ns = "default", .pod = pod_name(rank), .container = "main"};
  }
  static std::string read(int fd) {
    std::string text(1 << 20, '\0');
    text.resize(static_cast<std::size_t>(pread(fd, text.data(), text.size(), 0)));
    return text;
  }
  void set_pod(int rank, const std::string& phase, const Json& state) {
    const Json status{{"phase", phase},
                      {"containerStatuses", Json::array({{{"name", "main"},
                                                          {"ready", phase == "Running"},
                                                          {"restartCount", 0},
                                                          {"state", state}}})}};
    TJ_CHECK(api()
                 .objects()
                 .patch_status(Resource::pods, {"default", pod_name(rank)}, {{"status", status}})
                 .ok(),
             pod_name(rank));
  }
  void look() {
    timer_.expires_after(std::chrono::milliseconds{2});
    timer_.async_wait([this](auto failure) {
      if (failure || steps_.empty()) return;
      TJ_CHECK(std::chrono::steady_clock::now() < deadline_,
               "printed:\n" + printed() + "notes:\n" + notes());
      if (steps_.front().when()) {
        const Step step = std::move(steps_.front());
        steps_.pop_front();
        step.then();
      }
      if (!steps_.empty()) look();
    });
  }

  int out_ = memfd_create("lines", MFD_CLOEXEC);
  int notes_ = memfd_create("notes", MFD_CLOEXEC);
  MemoryApi* api_ = nullptr;
  Session session_;
  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::time_point deadline_;
  std::deque<Step> steps_;
  LogTime time_ = *parse_time("2026-11-21T00:00:00Z");
};

}  // namespace tj
