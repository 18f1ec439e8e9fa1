// The program of a kubeconfig that says who we are (users[].user.exec), as EKS, GKE and AKS hand it
// out. What it is told and what it answers: client.authentication.k8s.io/v1 and v1beta1
// (k8s.io/client-go, plugin/pkg/client/auth/exec).
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "contract/result.h"
#include "operator/kube/kube_config.h"

namespace tj {

struct ExecCredential {
  std::string token;
  std::string certificate_pem;
  std::string key_pem;
  std::optional<std::chrono::system_clock::time_point> expires;
};

/// Runs it and reads its answer; blocks. Errors name the kubeconfig's field.
Result<ExecCredential> run_exec_plug_in(const KubeConfig& config);

/// KUBERNETES_EXEC_INFO, as JSON.
Result<std::string> exec_info(const KubeConfig& config, bool is_interactive);
/// What it printed. Pure.
Result<ExecCredential> read_exec_credential(const ExecPlugIn& plug_in, const std::string& output);

}  // namespace tj
