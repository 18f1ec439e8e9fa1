#include "operator/kube/kube_config.h"

#include <openssl/evp.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>
#include <vector>

#include "operator/kube/file_text.h"
#include "operator/kube/tls_identity.h"

namespace tj {
namespace {

/// A kubeconfig, or the part of one: a node with the path that leads to it, for messages.
struct Field {
  YAML::Node node;
  std::string file;
  std::string path;

  Field at(const std::string& key) const {
    return {node && node.IsMap() ? YAML::Node(node[key]) : YAML::Node(YAML::NodeType::Undefined),
            file, path.empty() ? key : path + "." + key};
  }
  bool present() const { return node.IsDefined() && !node.IsNull(); }
  std::string text() const { return present() && node.IsScalar() ? node.Scalar() : std::string(); }
  Error wrong(const std::string& message) const {
    return Error{Code::invalid, message, file + ": " + path, {}};
  }
};

Result<std::string> decode_base64(const Field& field) {
  std::string text = field.text();
  text.erase(std::remove_if(text.begin(), text.end(),
                            [](unsigned char c) { return std::isspace(c) != 0; }),
             text.end());
  std::string bytes(text.size(), '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                      reinterpret_cast<const unsigned char*>(text.data()), int(text.size()));
  if (size < 0 || text.size() % 4 != 0) return field.wrong("is not base64");
  const auto padding =
      std::count(text.end() - std::min<std::ptrdiff_t>(2, std::ssize(text)), text.end(), '=');
  bytes.resize(static_cast<std::size_t>(size) - static_cast<std::size_t>(padding));
  return bytes;
}

/// Paths in a kubeconfig are relative to the folder it lies in.
std::string resolve(const Field& field) {
  return (std::filesystem::path(field.file).parent_path() / field.text()).string();
}

struct Pem {
  std::string text;
  std::string source;
};

/// `key`-data wins over `key`, as with kubectl.
Result<Pem> read_pem(const Field& parent, const std::string& key) {
  const Field data = parent.at(key + "-data");
  if (data.present()) {
    Result<std::string> text = decode_base64(data);
    if (!text) return text.error();
    return Pem{*text, data.file + ": " + data.path};
  }
  const Field file = parent.at(key);
  if (file.text().empty()) return Pem{};
  Result<std::string> text = read_file_text(resolve(file));
  if (!text) return file.wrong(describe(text.error()));
  return Pem{*text, resolve(file) + " (" + file.file + ": " + file.path + ")"};
}

Result<std::vector<Field>> read_documents(const std::vector<std::string>& paths) {
  std::vector<Field> documents;
  for (const std::string& path : paths) {
    Result<std::string> text = read_file_text(path);
    const bool one_of_many = paths.size() > 1;
    if (!text && text.error().code == Code::not_found && one_of_many) continue;
    if (!text) return text.error();
    try {
      YAML::Node node = YAML::Load(*text);
      if (!node.IsMap()) return Error{Code::invalid, "is not a kubeconfig: no YAML map", path, {}};
      documents.push_back({node, path, ""});
    } catch (const YAML::Exception& error) {
      return Error{Code::invalid, std::string("is not YAML: ") + error.what(), path, {}};
    }
  }
  if (documents.empty()) {
    return Error{Code::not_found, "none of these files exists", paths.front() + " ...", {}};
  }
  return documents;
}

/// clusters[name].cluster and the like: the first document that has it wins.
Result<Field> find_named(const std::vector<Field>& documents, const std::string& list,
                         const std::string& kind, const std::string& name) {
  for (const Field& document : documents) {
    const Field entries = document.at(list);
    if (!entries.present() || !entries.node.IsSequence()) continue;
    for (const YAML::Node& entry : entries.node) {
      const Field field{entry, document.file, list + "[" + name + "]"};
      if (field.at("name").text() == name) return field.at(kind);
    }
  }
  return Error{Code::invalid,
               "there is none named \"" + name + "\"",
               documents.front().file + ": " + list,
               {}};
}

std::string current_context(const std::vector<Field>& documents) {
  for (const Field& document : documents) {
    const std::string name = document.at("current-context").text();
    if (!name.empty()) return name;
  }
  return {};
}

Result<void> read_cluster(const Field& cluster, KubeConfig& config) {
  const Field server = cluster.at("server");
  config.server = server.text();
  if (config.server.rfind("https://", 0) != 0 || config.server.size() == 8) {
    return server.wrong("is \"" + config.server + "\"; it must begin with https://");
  }
  if (config.server[8] == '[') {
    return server.wrong("is \"" + config.server +
                        "\"; an IPv6 address can't be used here, give a host name");
  }
  const Field insecure = cluster.at("insecure-skip-tls-verify");
  if (insecure.text() == "true") {
    return insecure.wrong(
        "is true; the server's certificate is always verified: remove it and give "
        "certificate-authority or certificate-authority-data");
  }
  const Field proxy = cluster.at("proxy-url");
  if (!proxy.text().empty()) return proxy.wrong("proxies are not supported");
  config.tls_server_name = cluster.at("tls-server-name").text();
  Result<Pem> ca = read_pem(cluster, "certificate-authority");
  if (!ca) return ca.error();
  config.ca_pem = ca->text;
  config.ca_source = ca->source;
  return check_ca(config.ca_pem, config.ca_source);
}

Result<void> read_user(const Field& user, KubeConfig& config) {
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
  config.token = trimmed(user.at("token").text());
  const Field token_file = user.at("tokenFile");
  if (!token_file.text().empty()) {
    config.token_file = resolve(token_file);
    Result<std::string> token = read_file_text(config.token_file);
    if (!token) return token_file.wrong(describe(token.error()));
  }
  if (certificate->text.empty()) return {};
  return check_client_identity({.certificate_pem = certificate->text,
                                .certificate_source = certificate->source,
                                .key_pem = key->text,
                                .key_source = key->source});
}

Result<KubeConfig> from_files(const std::vector<std::string>& paths, const std::string& wanted) {
  Result<std::vector<Field>> documents = read_documents(paths);
  if (!documents) return documents.error();
  const std::string name = wanted.empty() ? current_context(*documents) : wanted;
  if (name.empty()) {
    return Error{Code::invalid,
                 "is empty; it must name one of contexts",
                 documents->front().file + ": current-context",
                 {}};
  }
  Result<Field> context = find_named(*documents, "contexts", "context", name);
  if (!context) return context.error();
  Result<Field> cluster =
      find_named(*documents, "clusters", "cluster", context->at("cluster").text());
  if (!cluster) return cluster.error();

  KubeConfig config;
  config.source = context->file;
  if (Result<void> read = read_cluster(*cluster, config); !read) return read.error();
  const std::string user_name = context->at("user").text();
  if (!user_name.empty()) {
    Result<Field> user = find_named(*documents, "users", "user", user_name);
    if (!user) return user.error();
    if (Result<void> read = read_user(*user, config); !read) return read.error();
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
  // An IPv6 address can't be put into the client's URLs; this name is in every server's
  // certificate.
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
  if (!sources.kubeconfig.empty()) return from_files({sources.kubeconfig}, sources.context);
  const std::vector<std::string> named = split_paths(sources.env("KUBECONFIG"));
  if (!named.empty()) return from_files(named, sources.context);
  if (!sources.env("KUBERNETES_SERVICE_HOST").empty()) return in_cluster(sources);
  const std::string home = sources.env("HOME") + "/.kube/config";
  if (std::filesystem::exists(home)) return from_files({home}, sources.context);
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
