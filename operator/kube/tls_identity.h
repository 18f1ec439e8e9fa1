// Whom we trust and who we are, as OpenSSL wants it: parsed once, shared by all connections. (The
// HTTP library makes a TLS context for each connection; parsing the same files again for each costs
// more than the requests themselves.)
#pragma once
#include <memory>
#include <string>

#include "contract/result.h"
#include "operator/kube/kube_config.h"

struct ssl_ctx_st;         // SSL_CTX
struct x509_store_ctx_st;  // X509_STORE_CTX

namespace tj {

struct ClientIdentity {
  std::string certificate_pem;  // the leaf first, then what leads to the authority
  std::string certificate_source;
  std::string key_pem;
  std::string key_source;
};

/// Fails when `pem` holds no certificate. Empty is fine: then the system's authorities are meant.
Result<void> check_ca(const std::string& pem, const std::string& source);
/// Fails when one can't be read, the key is encrypted, or they don't belong together.
Result<void> check_client_identity(const ClientIdentity& identity);

class TlsIdentity {
 public:
  /// Keeps no reference to `config`.
  static Result<std::shared_ptr<TlsIdentity>> load(const KubeConfig& config);
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;

  /// Makes `context` trust our authorities alone, show our certificate, and check the server's name
  /// against its certificate. This object must outlive the handshakes made with `context`.
  void apply(ssl_ctx_st* context);
  /// Why the last certificate was not accepted; "" when it was. Reading it forgets it. Not
  /// thread-safe: handshakes and this run on one thread.
  std::string take_refusal();
  /// The name that the server's certificate must have.
  const std::string& host() const { return host_; }

 private:
  TlsIdentity();
  static int verify(x509_store_ctx_st* store, void* self);

  struct Handles;
  std::unique_ptr<Handles> handles_;
  std::string host_;
  std::string trusted_;         // what is trusted, for messages
  bool trusts_anyone_ = false;  // insecure-skip-tls-verify
  std::string refusal_;
};

}  // namespace tj
