// Who we are, request by request: certificate, bearer token (a file that rotates, or a plug-in's
// answer that expires), basic authentication, and whom the server shall take us for.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/exec_plug_in.h"
#include "operator/kube/tls_identity.h"
#include "operator/kube/token_source.h"

namespace tj {

struct Header {
  std::string name;
  std::string value;
};

/// What a request carries.
struct Authority {
  std::vector<Header> headers;
  std::string token;  // which one it is, for renew()
  std::shared_ptr<TlsIdentity> identity;
};

/// Lives on the loop's thread; a plug-in blocks it.
class Credentials {
 public:
  using RunPlugIn = std::function<Result<ExecCredential>(const KubeConfig&)>;
  using WallClock = std::function<std::chrono::system_clock::time_point()>;

  explicit Credentials(
      KubeConfig config, RunPlugIn run_plug_in = run_exec_plug_in,
      WallClock now = [] { return std::chrono::system_clock::now(); });

  /// Runs the plug-in where it has not run yet, or its answer has expired. forbidden: we can't say
  /// who we are; unavailable: certificates that can't be used.
  Result<Authority> current();
  /// The server said 401 to `refused`: true when there is something else to try.
  bool renew(const Authority& refused);

 private:
  Result<void> load_identity();
  Result<void> run_plug_in();
  bool needs_plug_in() const;

  KubeConfig config_;  // with the certificate of the plug-in
  RunPlugIn run_plug_in_;
  WallClock now_;
  TokenSource token_;
  std::shared_ptr<TlsIdentity> identity_;
  std::optional<ExecCredential> credential_;
};

}  // namespace tj
