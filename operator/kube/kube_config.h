// Where the API server is and who we are: from a kubeconfig, or from the files that Kubernetes
// mounts into a pod. For a program the server's certificate is always verified, and what would
// switch that off, or start a program of its own to log in, is refused; for a person it is read as
// kubectl reads it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj {

/// A program that says who we are: users[].user.exec.
struct ExecPlugIn {
  enum class Interactive { never, if_available, always };
  struct Variable {
    std::string name;
    std::string value;
    bool operator==(const Variable&) const = default;
  };
  std::string api_version;  // client.authentication.k8s.io/v1 or /v1beta1
  std::string command;      // with a slash: resolved against the kubeconfig's folder
  std::vector<std::string> args;
  std::vector<Variable> env;
  std::string install_hint;
  Interactive interactive = Interactive::if_available;
  bool provide_cluster_info = false;
  std::string field;  // file and field, for messages
  bool operator==(const ExecPlugIn&) const = default;
};

/// Whom the server shall take us for: users[].user.as and its neighbours.
struct Impersonation {
  struct Extra {
    std::string key;
    std::string value;
    bool operator==(const Extra&) const = default;
  };
  std::string user;
  std::string uid;
  std::vector<std::string> groups;
  std::vector<Extra> extra;
  bool operator==(const Impersonation&) const = default;
};

struct KubeConfig {
  std::string server;           // https://host:port, perhaps with a path
  std::string tls_server_name;  // the name in the server's certificate; empty: the host of `server`
  std::string ca_pem;           // whom we trust; empty: the system's authorities
  std::string client_certificate_pem;
  std::string client_key_pem;
  std::string token;       // static
  std::string token_file;  // read again when it rotates; wins over `token`
  std::string ns = "default";
  std::string source;     // the file(s) it came from, for messages
  std::string ca_source;  // file and field of `ca_pem`, for messages

  // For a person only.
  std::string username;  // of basic authentication
  std::string password;
  Impersonation impersonation;
  std::optional<ExecPlugIn> exec;
  std::string exec_config_yaml;  // the cluster's extension for plug-ins; "" for none
  std::string proxy_url;         // empty: as HTTPS_PROXY and NO_PROXY say
  bool insecure_skip_tls_verify = false;
};

/// A program runs unattended: it takes no credentials that somebody else's program hands out.
enum class ConfigReader { program, person };

struct KubeConfigSources {
  std::string kubeconfig;  // the flag --kubeconfig; empty: not given
  std::string context;     // the flag --context; empty: the file's current-context
  std::function<std::string(const char* name)> env;  // "" where the variable is not set
  std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
  ConfigReader reader = ConfigReader::program;
};

/// The first that is there: --kubeconfig, KUBECONFIG (several paths, the first that names a thing
/// wins, as with kubectl), the pod's service account, ~/.kube/config; for a person the last two
/// change places, as with kubectl. Each error names file and field. Certificates and keys are
/// checked to be readable and to belong together.
Result<KubeConfig> load_kube_config(const KubeConfigSources& sources);

}  // namespace tj
