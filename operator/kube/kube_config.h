// Where the API server is and who we are: from a kubeconfig, or from the files that Kubernetes
// mounts into a pod. The server's certificate is always verified; what would switch that off, or
// start a program of its own to log in, is refused.
#pragma once
#include <functional>
#include <string>

#include "contract/result.h"

namespace tj {

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
};

struct KubeConfigSources {
  std::string kubeconfig;  // the flag --kubeconfig; empty: not given
  std::string context;     // the flag --context; empty: the file's current-context
  std::function<std::string(const char* name)> env;  // "" where the variable is not set
  std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
};

/// The first that is there: --kubeconfig, KUBECONFIG (several paths, the first that names a thing
/// wins, as with kubectl), the pod's service account, ~/.kube/config. Each error names file and
/// field. Certificates and keys are checked to be readable and to belong together.
Result<KubeConfig> load_kube_config(const KubeConfigSources& sources);

}  // namespace tj
