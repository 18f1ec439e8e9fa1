#include "operator/kube/kube_config.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "operator/kube/file_text.h"
#include "operator/kube/kube_config_parts.h"
#include "operator/kube/kubeconfig_file.h"
#include "operator/kube/tls_identity.h"

namespace tj {
namespace {

using Field = KubeConfigField;

std::string current_context(const std::vector<Field>& documents) {
  for (const Field& document : documents) {
    const std::string name = document.at("current-context").text();
    if (!name.empty()) return name;
  }
  return {};
}

Result<KubeConfig> from_files(const std::vector<std::string>& paths,
                              const KubeConfigSources& sources) {
  Result<std::vector<Field>> documents = read_kubeconfigs(paths);
  if (!documents) return documents.error();
  const std::string name = sources.context.empty() ? current_context(*documents) : sources.context;
  if (name.empty()) {
    return Error{Code::invalid,
                 "is empty; it must name one of contexts",
                 documents->front().file + ": current-context",
                 {}};
  }
  Result<Field> context =
      find_named(*documents, {.list = "contexts", .kind = "context", .name = name});
  if (!context) return context.error();
  Result<Field> cluster = find_named(
      *documents, {.list = "clusters", .kind = "cluster", .name = context->at("cluster").text()});
  if (!cluster) return cluster.error();

  KubeConfig config;
  config.source = context->file;
  const Result<void> server = read_cluster(*cluster, sources.reader, config);
  if (!server) return server.error();
  const std::string user_name = context->at("user").text();
  if (!user_name.empty()) {
    Result<Field> user =
        find_named(*documents, {.list = "users", .kind = "user", .name = user_name});
    if (!user) return user.error();
    const Result<void> read = read_user(*user, sources.reader, config);
    if (!read) return read.error();
  }
  const std::string ns = context->at("namespace").text();
  if (!ns.empty()) config.ns = ns;
  return config;
}

Result<KubeConfig> in_cluster(const KubeConfigSources& sources) {
  const std::string host = sources.env("KUBERNETES_SERVICE_HOST");
  const std::string port = sources.env("KUBERNETES_SERVICE_PORT");
  const std::string& dir = sources.service_account_dir;
  KubeConfig config;
  // An IPv6 address can't be put into the URLs of the operator's client; this name is in every
  // server's certificate.
  const bool ipv6 = host.find(':') != std::string::npos;
  config.server =
      "https://" + (ipv6 ? "kubernetes.default.svc" : host) + ":" + (port.empty() ? "443" : port);
  config.token_file = dir + "/token";
  config.source = dir;
  config.ca_source = dir + "/ca.crt";
  Result<std::string> ca = read_file_text(config.ca_source);
  if (!ca) return ca.error();
  config.ca_pem = *ca;
  if (Result<void> checked = check_ca(config.ca_pem, config.ca_source); !checked) {
    return checked.error();
  }
  Result<std::string> token = read_file_text(config.token_file);
  if (!token) return token.error();
  if (trimmed(*token).empty()) return Error{Code::invalid, "is empty", config.token_file, {}};
  Result<std::string> ns = read_file_text(dir + "/namespace");
  if (ns && !trimmed(*ns).empty()) config.ns = trimmed(*ns);
  return config;
}

std::vector<std::string> split_paths(const std::string& text) {
  std::vector<std::string> paths;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) paths.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return paths;
}

Result<KubeConfig> choose(const KubeConfigSources& sources) {
  if (!sources.kubeconfig.empty()) return from_files({sources.kubeconfig}, sources);
  const std::vector<std::string> named = split_paths(sources.env("KUBECONFIG"));
  if (!named.empty()) return from_files(named, sources);
  const std::string home = sources.env("HOME") + "/.kube/config";
  std::error_code unreadable;
  const bool has_home = std::filesystem::exists(home, unreadable) || unreadable;
  if (has_home && sources.reader == ConfigReader::person) return from_files({home}, sources);
  if (!sources.env("KUBERNETES_SERVICE_HOST").empty()) return in_cluster(sources);
  if (has_home) return from_files({home}, sources);
  return Error{
      Code::not_found,
      "no API server is configured: give --kubeconfig FILE, set KUBECONFIG, or write " + home,
      "kubeconfig",
      {}};
}

}  // namespace

Result<KubeConfig> load_kube_config(const KubeConfigSources& sources) {
  try {
    return choose(sources);
  } catch (const YAML::Exception& error) {
    return Error{
        Code::invalid, std::string("can't be understood: ") + error.what(), "kubeconfig", {}};
  }
}

}  // namespace tj
