// A real kube-apiserver for the tests of this process: the one that TJ_TEST_KUBECONFIG names, or
// one that tools/cluster/apiserver starts and that ends with this process, however it ends.
#pragma once
#include <string>

#include "contract/result.h"

namespace tj {

class ApiServer {
 public:
  ApiServer() = default;
  ~ApiServer() { stop(); }
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  /// Why there is none, or nothing.
  Result<void> start();
  void stop();
  const std::string& kubeconfig() const { return kubeconfig_; }
  /// A user without any right; "" with a server of somebody else.
  std::string nobody_kubeconfig() const { return dir_.empty() ? "" : dir_ + "/nobody.conf"; }
  /// Makes etcd forget what was before `revision`, as it does by itself after five minutes.
  bool compact(const std::string& revision) const;

 private:
  std::string kubeconfig_;
  std::string dir_;
  int leash_ = -1;  // the starter ends the server when this pipe closes
  int starter_ = -1;
};

}  // namespace tj
