#include "operator/kube/kube_config_parts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "operator/kube/file_text.h"
#include "operator/kube/server_url.h"
#include "operator/kube/tls_identity.h"

namespace tj {
namespace {

using Field = KubeConfigField;

constexpr const char* kExecApiV1 = "client.authentication.k8s.io/v1";
constexpr const char* kExecApiV1Beta1 = "client.authentication.k8s.io/v1beta1";
/// The cluster's extension that is handed to plug-ins (client-go, tools/clientcmd/api).
constexpr const char* kExecExtension = "client.authentication.k8s.io/exec";

std::string in_quotes(const std::string& text) { return "\"" + text + "\""; }

/// What stands in a header's line must not end it.
bool fits_in_a_header(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < ' ' || byte == 0x7f;
  });
}

Result<void> read_server_of_program(const Field& server) {
  const std::string text = server.text();
  if (text.rfind("https://", 0) != 0 || text.size() == 8) {
    return server.wrong("is \"" + text + "\"; it must begin with https://");
  }
  if (text[8] != '[') return {};
  return server.wrong("is \"" + text + "\"; an IPv6 address can't be used here, give a host name");
}

Result<void> read_server_of_person(const Field& server) {
  const Result<ServerUrl> url = parse_server_url(server.text());
  if (!url) return server.wrong("is " + in_quotes(server.text()) + "; " + url.error().message);
  if (url->scheme == "https" || url->scheme == "http") return {};
  return server.wrong("is " + in_quotes(server.text()) +
                      "; it must begin with https:// or http://");
}

Result<void> read_proxy(const Field& proxy, KubeConfig& config) {
  config.proxy_url = proxy.text();
  if (config.proxy_url.empty()) return {};
  const Result<ServerUrl> url = parse_server_url(config.proxy_url);
  if (!url) return proxy.wrong("is " + in_quotes(config.proxy_url) + "; " + url.error().message);
  constexpr std::array kSchemes = {"http", "https", "socks5", "socks5h"};
  if (std::find(kSchemes.begin(), kSchemes.end(), url->scheme) != kSchemes.end()) return {};
  return proxy.wrong("is " + in_quotes(config.proxy_url) +
                     "; its scheme must be http, https or socks5");
}

Result<void> refuse_what_a_program_may_not(const Field& cluster) {
  const Field insecure = cluster.at("insecure-skip-tls-verify");
  if (insecure.is_true()) {
    return insecure.wrong(
        "is true; the server's certificate is always verified: remove it and give "
        "certificate-authority or certificate-authority-data");
  }
  const Field proxy = cluster.at("proxy-url");
  if (!proxy.text().empty()) return proxy.wrong("proxies are not supported");
  return {};
}

/// The cluster's `config` for plug-ins, as YAML.
std::string plug_in_config(const Field& cluster) {
  for (const Field& entry : cluster.at("extensions").items()) {
    if (entry.at("name").text() == kExecExtension && entry.at("extension").present())
      return YAML::Dump(entry.at("extension").node);
  }
  return {};
}

Result<std::vector<std::string>> texts_of(const Field& list) {
  std::vector<std::string> texts;
  if (list.present() && !list.node.IsSequence()) return list.wrong("is no list");
  for (const Field& item : list.items()) {
    if (!item.node.IsScalar()) return item.wrong("is no text");
    texts.push_back(item.text());
  }
  return texts;
}

Result<ExecPlugIn::Interactive> interactive_of(const Field& exec, const std::string& api_version) {
  using enum ExecPlugIn::Interactive;
  const Field mode = exec.at("interactiveMode");
  if (mode.text() == "Never") return never;
  if (mode.text() == "IfAvailable") return if_available;
  if (mode.text() == "Always") return always;
  if (mode.text().empty() && api_version == kExecApiV1Beta1) return if_available;
  return mode.wrong("is " + in_quotes(mode.text()) +
                    "; it must be Never, IfAvailable or Always, and " + kExecApiV1 +
                    " requires it");
}

Result<std::vector<ExecPlugIn::Variable>> variables_of(const Field& env) {
  std::vector<ExecPlugIn::Variable> variables;
  for (const Field& item : env.items()) {
    const std::string name = item.at("name").text();
    const bool is_name = !name.empty() && name.find('=') == std::string::npos;
    if (!is_name)
      return item.at("name").wrong("is " + in_quotes(name) + "; it must name a variable");
    variables.push_back({name, item.at("value").text()});
  }
  return variables;
}

/// As exec.LookPath of Go and kubectl have it: a name without a slash is looked for in PATH.
Result<std::string> command_of(const Field& exec) {
  const Field command = exec.at("command");
  const std::string text = command.text();
  if (text.empty()) return command.wrong("is missing; it must name the program that logs in");
  const bool is_path = text.find('/') != std::string::npos;
  if (!is_path) return text;
  return std::filesystem::absolute(resolved_path(command)).lexically_normal().string();
}

Result<void> read_exec(const Field& exec, KubeConfig& config) {
  ExecPlugIn plug_in;
  plug_in.field = exec.name();
  const Field version = exec.at("apiVersion");
  plug_in.api_version = version.text();
  if (plug_in.api_version != kExecApiV1 && plug_in.api_version != kExecApiV1Beta1) {
    return version.wrong("is " + in_quotes(plug_in.api_version) + "; it must be " + kExecApiV1 +
                         " or " + kExecApiV1Beta1 + " (a newer plug-in may write it anew)");
  }
  const Result<std::string> command = command_of(exec);
  if (!command) return command.error();
  plug_in.command = *command;
  const auto args = texts_of(exec.at("args"));
  if (!args) return args.error();
  plug_in.args = *args;
  const auto env = variables_of(exec.at("env"));
  if (!env) return env.error();
  plug_in.env = *env;
  const auto interactive = interactive_of(exec, plug_in.api_version);
  if (!interactive) return interactive.error();
  plug_in.interactive = *interactive;
  plug_in.install_hint = exec.at("installHint").text();
  plug_in.provide_cluster_info = exec.at("provideClusterInfo").is_true();
  config.exec = std::move(plug_in);
  return {};
}

Result<void> read_impersonation(const Field& user, Impersonation& as) {
  as.user = user.at("as").text();
  as.uid = user.at("as-uid").text();
  const auto groups = texts_of(user.at("as-groups"));
  if (!groups) return groups.error();
  as.groups = *groups;
  const Field extra = user.at("as-user-extra");
  if (extra.present() && extra.node.IsMap()) {
    for (const auto& entry : extra.node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      const auto values = texts_of(extra.at(key));
      if (!values) return values.error();
      for (const std::string& value : *values) as.extra.push_back({key, value});
    }
  }
  bool fits = fits_in_a_header(as.user) && fits_in_a_header(as.uid);
  for (const std::string& group : as.groups) fits = fits && fits_in_a_header(group);
  for (const auto& [key, value] : as.extra) fits = fits && !key.empty() && fits_in_a_header(value);
  if (!fits) return user.at("as").wrong("holds control characters, or an empty key");
  const bool lacks_user =
      as.user.empty() && (!as.uid.empty() || !as.groups.empty() || !as.extra.empty());
  if (!lacks_user) return {};
  return user.at("as").wrong("is missing, while there are as-groups, as-uid or as-user-extra");
}

Result<void> read_login_of_person(const Field& user, KubeConfig& config) {
  const Field provider = user.at("auth-provider");
  if (provider.present()) {
    return provider.wrong(
        "is not supported, neither by kubectl since v1.26; use the provider's exec plug-in instead "
        "(gke-gcloud-auth-plugin, kubelogin), which its own command writes into the kubeconfig");
  }
  config.username = user.at("username").text();
  config.password = user.at("password").text();
  const Result<void> as = read_impersonation(user, config.impersonation);
  if (!as) return as.error();
  const Field exec = user.at("exec");
  // As with kubectl, other credentials win.
  const bool is_known_otherwise = !config.token.empty() || !config.token_file.empty() ||
                                  !config.username.empty() ||
                                  !config.client_certificate_pem.empty();
  if (exec.present() && !is_known_otherwise) return read_exec(exec, config);
  if (!config.token.empty() && !config.username.empty()) {
    return user.at("username").wrong("is given beside a token; only one of them can be meant");
  }
  return {};
}

Result<void> refuse_login_plug_ins(const Field& user) {
  for (const char* key : {"exec", "auth-provider"}) {
    const Field plug_in = user.at(key);
    if (!plug_in.present()) continue;
    return plug_in.wrong(
        "log-in plug-ins are not supported; use a client certificate, token or tokenFile (kubectl "
        "create token makes one)");
  }
  for (const char* key : {"username", "as"}) {
    const Field refused = user.at(key);
    if (refused.present()) return refused.wrong("is not supported; use a certificate or a token");
  }
  return {};
}

Result<void> read_certificates(const Field& user, KubeConfig& config) {
  Result<Pem> certificate = read_pem(user, "client-certificate");
  if (!certificate) return certificate.error();
  Result<Pem> key = read_pem(user, "client-key");
  if (!key) return key.error();
  if (certificate->text.empty() != key->text.empty()) {
    const bool no_key = key->text.empty();
    return user.at(no_key ? "client-key" : "client-certificate")
        .wrong(std::string("is missing, while there is a ") +
               (no_key ? "client-certificate" : "client-key"));
  }
  config.client_certificate_pem = certificate->text;
  config.client_key_pem = key->text;
  if (certificate->text.empty()) return {};
  return check_client_identity({.certificate_pem = certificate->text,
                                .certificate_source = certificate->source,
                                .key_pem = key->text,
                                .key_source = key->source});
}

Result<void> read_token(const Field& user, KubeConfig& config) {
  config.token = trimmed(user.at("token").text());
  if (!fits_in_a_header(config.token)) return user.at("token").wrong("holds control characters");
  const Field token_file = user.at("tokenFile");
  if (token_file.text().empty()) return {};
  config.token_file = resolved_path(token_file);
  const Result<std::string> token = read_file_text(config.token_file);
  if (!token) return token_file.wrong(describe(token.error()));
  return {};
}

}  // namespace

Result<void> read_cluster(const KubeConfigField& cluster, ConfigReader reader, KubeConfig& config) {
  const bool is_person = reader == ConfigReader::person;
  const Field server = cluster.at("server");
  config.server = server.text();
  const Result<void> named =
      is_person ? read_server_of_person(server) : read_server_of_program(server);
  if (!named) return named.error();
  const Result<void> allowed = is_person ? read_proxy(cluster.at("proxy-url"), config)
                                         : refuse_what_a_program_may_not(cluster);
  if (!allowed) return allowed.error();
  config.tls_server_name = cluster.at("tls-server-name").text();
  Result<Pem> ca = read_pem(cluster, "certificate-authority");
  if (!ca) return ca.error();
  config.ca_pem = ca->text;
  config.ca_source = ca->source;
  const Field insecure = cluster.at("insecure-skip-tls-verify");
  config.insecure_skip_tls_verify = is_person && insecure.is_true();
  if (config.insecure_skip_tls_verify && !config.ca_pem.empty()) {
    return insecure.wrong("is true, while there is a certificate-authority; remove one of them");
  }
  if (is_person) config.exec_config_yaml = plug_in_config(cluster);
  return check_ca(config.ca_pem, config.ca_source);
}

Result<void> read_user(const KubeConfigField& user, ConfigReader reader, KubeConfig& config) {
  const bool is_person = reader == ConfigReader::person;
  if (!is_person) {
    const Result<void> allowed = refuse_login_plug_ins(user);
    if (!allowed) return allowed.error();
  }
  const Result<void> certificates = read_certificates(user, config);
  if (!certificates) return certificates.error();
  const Result<void> token = read_token(user, config);
  if (!token) return token.error();
  return is_person ? read_login_of_person(user, config) : Result<void>();
}

}  // namespace tj
