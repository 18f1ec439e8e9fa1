// Whether a proxy stands between us and the API server: the kubeconfig's proxy-url, else what
// HTTPS_PROXY and NO_PROXY say, with Go's rules (golang.org/x/net/http/httpproxy), which are
// kubectl's. Pure.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "contract/result.h"
#include "operator/kube/kube_config.h"
#include "operator/kube/server_url.h"

namespace tj {

using EnvText = std::function<std::string(const char* name)>;  // "" where it is not set

/// The proxy of the way to `server`; none: the way is direct. Errors name the variable.
Result<std::optional<ServerUrl>> choose_proxy(const KubeConfig& config, const ServerUrl& server,
                                              const EnvText& env);

/// Whether NO_PROXY's text excepts this host; localhost and loopback addresses always are.
bool is_reached_directly(const ServerUrl& server, const std::string& no_proxy);

}  // namespace tj
