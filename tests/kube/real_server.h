// The API server of this test program, started once for all its tests.
#pragma once
#include "operator/kube/kube_config.h"
#include "tests/kube/api_server.h"

namespace tj {

inline ApiServer& server() {
  static ApiServer one;
  return one;
}

inline KubeConfig config_of(const std::string& kubeconfig) {
  auto loaded = load_kube_config(
      {.kubeconfig = kubeconfig, .env = [](const char*) { return std::string(); }});
  TJ_CHECK(loaded.ok(), describe(loaded.error()));
  return *loaded;
}

}  // namespace tj
