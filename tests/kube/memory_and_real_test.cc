// One story told to the API server in memory and to a real one: each call has the same outcome,
// and a watch brings the same changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "operator/local/memory_api.h"
#include "tests/kube/client_loop.h"
#include "tests/kube/real_server.h"

namespace tj {
namespace {
using nlohmann::json;

constexpr const char* kNamespace = "default";
constexpr const char* kSelector = "suite=story";
constexpr const char* kEnd = "the-end";  // the last object that the watch sees

/// What a user of the API sees of an object; uids, times and versions differ from server to server.
std::string seen(const json& object) {
  const auto& meta = object.at("metadata");
  json shown = {{"name", meta.at("name")},
                {"labels", meta.value("labels", json::object())},
                {"status", object.value(json::json_pointer("/status/message"), "")},
                {"terminates", meta.contains("deletionTimestamp")}};
  return shown.dump();
}

json pod(const std::string& name, const std::string& suite = "story") {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", name}, {"labels", {{"suite", suite}}}}},
          {"spec",
           {{"nodeName", "n1"},
            {"restartPolicy", "Never"},
            {"containers", {{{"name", "main"}, {"image", "x"}}}}}}};
}

json delete_options(const std::string& uid, int grace_seconds) {
  return {{"kind", "DeleteOptions"},
          {"apiVersion", "v1"},
          {"gracePeriodSeconds", grace_seconds},
          {"preconditions", {{"uid", uid}}}};
}

/// Tells the story to one server and writes down what it answers.
class Teller {
 public:
  Teller(KubeApi& api, ClientLoop& loop) : api_(api), loop_(loop) {}

  std::vector<std::string> tell() {
    const json before = list("");
    begin_watch(before["metadata"]["resourceVersion"]);
    get("a");
    const json a = create(pod("a"));
    create(pod("a"));
    create(pod(""));
    statuses(a);
    labels(a);
    pages();
    deletions(a);
    create(pod(kEnd));
    end_watch();
    return std::move(transcript_);
  }

 private:
  void statuses(const json& a) {
    const std::string version = a["metadata"]["resourceVersion"];
    const json patch = {{"metadata", {{"resourceVersion", version}}},
                        {"status", {{"message", "hello"}}}};
    patch_status("a", patch);
    patch_status("a", patch);  // of a version that is no longer
    patch_status("a", {{"status", {{"message", nullptr}}}});
    patch_status("nobody", {{"status", {{"message", "hello"}}}});
  }

  /// A pod that leaves the selection and comes back.
  void labels(const json& stale) {
    replace("a", stale);
    json fresh = get("a");
    fresh["metadata"]["labels"]["suite"] = "another";
    fresh = replace("a", fresh);
    fresh["metadata"]["labels"]["suite"] = "story";
    replace("a", fresh);
    fresh["metadata"].erase("uid");
    replace("nobody", pod("nobody"));
  }

  void pages() {
    create(pod("b"));
    create(pod("c"));
    create(pod("d", "another"));
    std::string token;
    do {
      token = list(token)["metadata"].value("continue", "");
    } while (!token.empty());
  }

  void deletions(const json& a) {
    const std::string uid = a["metadata"]["uid"];
    remove("a", delete_options("00000000-0000-0000-0000-000000000000", 0));
    remove("a", delete_options(uid, 30));
    get("a");
    create(pod("a"));  // its name is taken until it is gone
    remove("a", delete_options(uid, 0));
    remove("a", delete_options(uid, 0));
    create(pod("a"));
  }

  json list(const std::string& token) {
    return ask(
        {.verb = Verb::list, .label_selector = kSelector, .limit = 2, .continue_token = token});
  }
  json get(const std::string& name) { return ask({.verb = Verb::get, .name = name}); }
  json create(const json& object) { return ask({.verb = Verb::create, .body = object.dump()}); }
  json replace(const std::string& name, const json& object) {
    return ask({.verb = Verb::replace, .name = name, .body = object.dump()});
  }
  json patch_status(const std::string& name, const json& patch) {
    return ask({.verb = Verb::patch_status, .name = name, .body = patch.dump()});
  }
  json remove(const std::string& name, const json& options) {
    return ask({.verb = Verb::remove, .name = name, .body = options.dump()});
  }

  json ask(Request request) {
    request.resource = Resource::pods;
    request.ns = kNamespace;
    std::string line = std::string(to_string(request.verb)) + " " + request.name + ": ";
    const auto answer = loop_.ask(api_, request);
    if (!answer) {
      transcript_.push_back(line + to_string(answer.error().code));
      return {};
    }
    json body = json::parse(*answer);
    if (request.verb == Verb::list) {
      for (const auto& item : body["items"]) line += seen(item);
    } else if (request.verb != Verb::remove) {  // a real one answers with a Status or the object
      line += seen(body);
    }
    transcript_.push_back(line);
    return body;
  }

  void begin_watch(const std::string& version) {
    stream_ = api_.watch({.resource = Resource::pods,
                          .ns = kNamespace,
                          .label_selector = kSelector,
                          .resource_version = version},
                         changes_.handler());
  }

  /// What the watch has brought since it began, to the end of the story.
  void end_watch() {
    const auto is_end = [](const std::string& line) {
      return line.find(std::string("\"name\":\"") + kEnd) != line.npos;
    };
    EXPECT_TRUE(
        loop_.run_until([&] { return !changes_.lines.empty() && is_end(changes_.lines.back()); }));
    for (const auto& line : changes_.lines) {
      const json change = json::parse(line);
      if (change["type"] == "BOOKMARK") continue;
      transcript_.push_back("watch: " + change["type"].get<std::string>() + " " +
                            seen(change["object"]));
    }
    stream_.reset();
  }

  KubeApi& api_;
  ClientLoop& loop_;
  WatchLog changes_;
  std::unique_ptr<WatchStream> stream_;
  std::vector<std::string> transcript_;
};

TEST(MemoryAndReal, a_story_has_the_same_outcome_call_by_call) {
  ClientLoop loop;
  RestKubeApi real(config_of(server().kubeconfig()), loop.post());
  MemoryApi memory(loop.post(), [] {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  });
  const auto wanted = Teller(real, loop).tell();
  const auto got = Teller(memory, loop).tell();
  EXPECT_GT(wanted.size(), 30U);
  for (std::size_t call = 0; call < std::max(wanted.size(), got.size()); ++call)
    EXPECT_EQ(call < got.size() ? got[call] : "nothing",
              call < wanted.size() ? wanted[call] : "nothing")
        << "call " << call;
}

}  // namespace
}  // namespace tj
