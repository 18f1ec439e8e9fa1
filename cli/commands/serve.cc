// tj serve: the page of tj ui for all who have a token of the cluster, each with their own rights.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>

#include "cli/cluster/cluster_api.h"
#include "cli/commands/commands.h"
#include "cli/ui/serve.h"
#include "contract/launch_env.h"
#include "operator/kube/file_text.h"
#include "operator/kube/server_url.h"
#include "operator/kube/tls_identity.h"

namespace tj {
namespace {

constexpr const char* kExamples = R"(
Examples:
  tj serve --listen 0.0.0.0:8080 --host jobs.example.org
                                  in a pod: as the chart of the operator starts it (page.enabled)
  tj serve --server https://10.0.0.1:6443 --ca ca.crt
                                  elsewhere, on 127.0.0.1:8080

It has no rights of its own. Whoever opens the page signs in with a token of the cluster, or a
proxy in front sends one with each request (Authorization: Bearer), and sees what that token may
read. It speaks HTTP: let a proxy in front do TLS. For yourself there is tj ui.

Exit codes: 0 ended with Ctrl-C or SIGTERM, 2 wrong input.)";

struct ServeArguments {
  std::string listen = "127.0.0.1:8080";
  std::vector<std::string> hosts;
  std::string server;
  std::string ca = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
  std::string ns;
  int check_seconds = 60;
};

/// --server, else that of the pod that we are in.
Result<std::string> server_of(const ServeArguments& arguments) {
  if (!arguments.server.empty()) {
    const auto url = parse_server_url(arguments.server);
    if (!url) return Error{Code::invalid, url.error().message, "--server", {}};
    if (url->scheme == "https") return arguments.server;
    return Error{Code::invalid,
                 "\"" + arguments.server + "\" must begin with https://: people's tokens go there",
                 "--server",
                 {}};
  }
  const auto host = process_env("KUBERNETES_SERVICE_HOST").value_or("");
  const auto port = process_env("KUBERNETES_SERVICE_PORT").value_or("443");
  if (host.empty())
    return Error{Code::invalid, "must be given outside of a cluster's pod", "--server", {}};
  const bool is_v6 = host.find(':') != std::string::npos;
  return "https://" + (is_v6 ? "[" + host + "]" : host) + ":" + port;
}

Result<KubeConfig> config_of(const ServeArguments& arguments) {
  const auto server = server_of(arguments);
  if (!server) return server.error();
  const auto ca = read_file_text(arguments.ca);
  if (!ca) return Error{Code::invalid, describe(ca.error()), "--ca", {}};
  if (const auto checked = check_ca(*ca, "--ca " + arguments.ca); !checked) return checked.error();
  return KubeConfig{.server = *server, .ca_pem = *ca, .ca_source = arguments.ca};
}

/// Each caller's own: the same server, and their token.
std::unique_ptr<KubeApi> client_of(boost::asio::io_context& loop, KubeConfig config,
                                   const std::string& token) {
  config.token = token;
  const auto no_proxy = [](const char*) { return std::string(); };
  return std::make_unique<ClusterApi>(loop, config, no_proxy,
                                      RestOptions{.user_agent = "tj-serve"});
}

int serve(const ServeArguments& arguments) {
  const auto config = config_of(arguments);
  if (!config) return refuse(config.error());
  const auto endpoint = parse_endpoint(arguments.listen);
  if (!endpoint) return refuse(endpoint.error());
  ui::CallersService service{.endpoint = *endpoint, .front = {.hosts = arguments.hosts}};
  for (std::string& host : service.front.hosts)
    std::ranges::transform(host, host.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  boost::asio::io_context loop;
  service.ns = arguments.ns;
  service.check_every = std::chrono::seconds(arguments.check_seconds);
  service.make_api = [&loop, &config](const std::string& token) {
    return client_of(loop, *config, token);
  };
  const auto served = ui::serve_callers_until_signal(loop, service);
  return served ? tj_exit::kSucceeded : refuse(served.error());
}

}  // namespace

void add_serve(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand(
      "serve", "the page of tj ui for many people, each with a token of their own");
  auto arguments = std::make_shared<ServeArguments>();
  command->add_option("--listen", arguments->listen, "where (127.0.0.1:8080); port 0: a free one")
      ->type_name("ADDRESS:PORT");
  command
      ->add_option("--host", arguments->hosts,
                   "a name by which browsers reach it, without port; may be said again (loopback)")
      ->type_name("NAME");
  command->add_option("--server", arguments->server, "the API server (that of the pod we are in)")
      ->type_name("URL");
  command
      ->add_option("--ca", arguments->ca,
                   "certificates that the API server's must lead to (those mounted in a pod)")
      ->type_name("FILE");
  command
      ->add_option("-n,--namespace", arguments->ns, "shown first, until another is asked for (all)")
      ->type_name("NAME");
  command
      ->add_option("--check-every", arguments->check_seconds,
                   "how often the API server is asked about each token again (60)")
      ->check(CLI::Range(1, 3600))
      ->type_name("SECONDS");
  command->footer(kExamples);
  command->callback([arguments, &exit_code] { exit_code = serve(*arguments); });
}

}  // namespace tj
