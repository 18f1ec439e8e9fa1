#include "cli/cluster/session.h"

#include <CLI/CLI.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <optional>
#include <utility>

#include "cli/cluster/cluster_api.h"
#include "contract/launch_env.h"
#include "operator/api/read.h"
#include "operator/kube/kube_config.h"

namespace tj {
namespace {

/// Of one list; a continue token that leads in a circle ends here.
constexpr int kPagesMax = 10'000;

Result<nlohmann::json> parsed(const Result<std::string>& body) {
  if (!body) return body.error();
  nlohmann::json object = nlohmann::json::parse(*body, nullptr, false);
  if (object.is_object()) return object;
  return Error{Code::internal, "the answer is not a JSON object", "", {}};
}

}  // namespace

void add_session_flags(CLI::App& command, SessionOptions& options) {
  command
      .add_option("--kubeconfig", options.kubeconfig,
                  "how to reach the API server (KUBECONFIG, else ~/.kube/config)")
      ->type_name("FILE");
  command
      .add_option("--context", options.context,
                  "which of its contexts (the kubeconfig's current-context)")
      ->type_name("NAME");
  command.add_option("-n,--namespace", options.ns, "in which namespace (the context's)")
      ->type_name("NAME");
}

Result<std::unique_ptr<Session>> Session::open(const SessionOptions& options) {
  const auto env = [](const char* name) { return process_env(name).value_or(""); };
  const auto config = load_kube_config({.kubeconfig = options.kubeconfig,
                                        .context = options.context,
                                        .env = env,
                                        .reader = ConfigReader::person});
  if (!config) return config.error();
  if (config->insecure_skip_tls_verify) {
    std::fprintf(stderr,
                 "warning: %s: insecure-skip-tls-verify: whoever answers at %s gets our "
                 "credentials\n",
                 config->source.c_str(), config->server.c_str());
  }
  // The API stands on the session's loop, which is there once the session is.
  auto session = std::make_unique<Session>([](const Post&) { return nullptr; },
                                           options.ns.empty() ? config->ns : options.ns);
  auto api =
      std::make_unique<ClusterApi>(session->loop_, *config, env, RestOptions{.user_agent = "tj"});
  session->link_ = api->link();
  session->api_ = std::move(api);
  return session;
}

Session::Session(const MakeApi& make_api, std::string ns)
    : ns_(std::move(ns)), api_(make_api([this](std::function<void()> work) {
        boost::asio::post(loop_, std::move(work));
      })) {}

Result<nlohmann::json> Session::call(Request request) {
  const auto guard = boost::asio::make_work_guard(loop_);
  std::optional<Result<std::string>> answer;
  api_->send(std::move(request), [&answer](Result<std::string> body) { answer = std::move(body); });
  loop_.restart();
  while (!answer) loop_.run_one();
  return parsed(*answer);
}

Result<std::vector<nlohmann::json>> Session::list(Request request) {
  request.verb = Verb::list;
  std::vector<nlohmann::json> objects;
  for (int page = 0; page < kPagesMax; ++page) {
    auto answer = call(request);
    if (!answer) return answer.error();
    for (auto& item : (*answer)["items"]) objects.push_back(std::move(item));
    request.continue_token = read::string_at(read::object_at(*answer, "metadata"), "continue");
    if (request.continue_token.empty()) return objects;
  }
  return Error{Code::internal, "a list without an end", to_string(request.resource), {}};
}

}  // namespace tj
