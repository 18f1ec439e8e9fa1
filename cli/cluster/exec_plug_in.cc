#include "cli/cluster/exec_plug_in.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/cluster/base64.h"
#include "cli/cluster/captured_program.h"
#include "operator/api/read.h"
#include "operator/api/types.h"
#include "operator/kube/file_text.h"
#include "operator/kube/tls_identity.h"
#include "yaml/yaml_json.h"

namespace tj {
namespace {

using nlohmann::json;
using namespace read;

/// A person may have to look for a second factor; a program must not keep us waiting.
constexpr std::chrono::minutes kInteractiveDeadline{5};
constexpr std::chrono::seconds kDeadline{60};
constexpr std::size_t kOutputBytesMax = 1024 * 1024;

Error wrong(const ExecPlugIn& plug_in, const std::string& message) {
  return Error{Code::invalid, message, plug_in.field, {}};
}

Result<bool> is_interactive(const ExecPlugIn& plug_in) {
  using enum ExecPlugIn::Interactive;
  const bool is_terminal = ::isatty(STDIN_FILENO) == 1;
  if (plug_in.interactive == always && !is_terminal) {
    return wrong(plug_in, "its interactiveMode is Always, and standard input is no terminal");
  }
  return plug_in.interactive != never && is_terminal;
}

Result<json> cluster_info(const KubeConfig& config) {
  json cluster = {{"server", config.server}};
  const auto add = [&cluster](const char* key, const std::string& value) {
    if (!value.empty()) cluster[key] = value;
  };
  add("tls-server-name", config.tls_server_name);
  add("certificate-authority-data", config.ca_pem.empty() ? "" : base64(config.ca_pem));
  add("proxy-url", config.proxy_url);
  if (config.insecure_skip_tls_verify) cluster["insecure-skip-tls-verify"] = true;
  cluster["config"] = nullptr;
  if (config.exec_config_yaml.empty()) return cluster;
  auto documents = parse_yaml(config.exec_config_yaml, config.source + ": extensions");
  if (!documents) return documents.error();
  if (!documents->empty()) cluster["config"] = std::move(documents->front());
  return cluster;
}

std::string not_run(const ExecPlugIn& plug_in, const Error& why) {
  std::string text = plug_in.command + ": " + why.message;
  if (why.code != Code::not_found) return text;
  text += "; this program logs in to the cluster and is not installed, or not in PATH";
  if (!plug_in.install_hint.empty()) text += "\n" + trimmed(plug_in.install_hint);
  return text;
}

}  // namespace

Result<std::string> exec_info(const KubeConfig& config, bool interactive) {
  json info = {{"kind", "ExecCredential"},
               {"apiVersion", config.exec->api_version},
               {"spec", {{"interactive", interactive}}}};
  if (config.exec->provide_cluster_info) {
    auto cluster = cluster_info(config);
    if (!cluster) return cluster.error();
    info["spec"]["cluster"] = std::move(*cluster);
  }
  return info.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<ExecCredential> read_exec_credential(const ExecPlugIn& plug_in, const std::string& output) {
  const std::string& command = plug_in.command;
  const json answer = parse(output);
  if (!answer.is_object() || string_at(answer, "kind") != "ExecCredential")
    return wrong(plug_in, command + " printed no ExecCredential on its standard output");
  const std::string version = string_at(answer, "apiVersion");
  if (version != plug_in.api_version) {
    return wrong(plug_in, "it is configured to use API version " + plug_in.api_version + ", " +
                              command + " returned version " + version);
  }
  const json& status = object_at(answer, "status");
  if (status.empty()) return wrong(plug_in, command + " didn't return a status field");
  ExecCredential credential{.token = trimmed(string_at(status, "token")),
                            .certificate_pem = string_at(status, "clientCertificateData"),
                            .key_pem = string_at(status, "clientKeyData")};
  const bool has_certificate = !credential.certificate_pem.empty();
  if (has_certificate == credential.key_pem.empty())
    return wrong(plug_in, command + " returned only certificate or key, not both");
  if (credential.token.empty() && !has_certificate)
    return wrong(plug_in, command + " didn't return a token or cert/key pair");
  if (credential.token.find_first_of("\r\n") != std::string::npos)
    return wrong(plug_in, command + " returned a token of several lines");
  if (has_certificate) {
    const std::string source = plug_in.field + ": the answer of " + command;
    const Result<void> pair = check_client_identity({.certificate_pem = credential.certificate_pem,
                                                     .certificate_source = source,
                                                     .key_pem = credential.key_pem,
                                                     .key_source = source});
    if (!pair) return pair.error();
  }
  const std::string expires = string_at(status, "expirationTimestamp");
  if (expires.empty()) return credential;
  credential.expires = parse_time(expires);
  if (credential.expires) return credential;
  return wrong(plug_in, command + " returned an expirationTimestamp that is no time of RFC 3339");
}

Result<ExecCredential> run_exec_plug_in(const KubeConfig& config) {
  const ExecPlugIn& plug_in = *config.exec;
  const auto interactive = is_interactive(plug_in);
  if (!interactive) return interactive.error();
  const auto info = exec_info(config, *interactive);
  if (!info) return info.error();
  ProgramRun run{.program = plug_in.command,
                 .args = plug_in.args,
                 .keeps_stdin = *interactive,
                 .output_bytes_max = kOutputBytesMax};
  if (*interactive)
    run.deadline = kInteractiveDeadline;
  else
    run.deadline = kDeadline;
  for (const auto& [name, value] : plug_in.env) run.env.push_back(name + "=" + value);
  run.env.push_back("KUBERNETES_EXEC_INFO=" + *info);
  const auto output = run_captured(run);
  if (!output) return wrong(plug_in, not_run(plug_in, output.error()));
  return read_exec_credential(plug_in, *output);
}

}  // namespace tj
