// The way to the API server: its name resolved, connected, through a proxy where there is one, TLS
// on top. Knows nothing of what is said then.
#pragma once
#include "cli/cluster/interrupt.h"
#include "cli/cluster/wire.h"
#include "operator/kube/server_url.h"

namespace tj {

struct Route {
  ServerUrl server;
  std::optional<ServerUrl> proxy;
  std::shared_ptr<TlsIdentity> proxy_identity;  // of an https proxy
};

/// `identity` is that of the server; unused where it speaks no TLS. `interrupt` closes what is
/// there of the connection; on success it goes on to do so. Errors have no subject.
boost::asio::awaitable<Result<std::unique_ptr<Wire>>> dial(const Route& route,
                                                           std::shared_ptr<TlsIdentity> identity,
                                                           Interrupt& interrupt);

/// "the connection broke: ...", in words.
std::string broken_text(const boost::system::error_code& error);

}  // namespace tj
