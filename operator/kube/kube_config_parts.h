// What a kubeconfig says of a cluster and of a user, and what of it is refused for whom. Private to
// operator/kube.
#pragma once
#include "operator/kube/kube_config.h"
#include "operator/kube/kubeconfig_file.h"

namespace tj {

/// Of clusters[].cluster; the CA is checked to be one.
Result<void> read_cluster(const KubeConfigField& cluster, ConfigReader reader, KubeConfig& config);
/// Of users[].user; certificate and key are checked to belong together. After read_cluster.
Result<void> read_user(const KubeConfigField& user, ConfigReader reader, KubeConfig& config);

}  // namespace tj
