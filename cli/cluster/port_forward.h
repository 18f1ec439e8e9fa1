// Ports of this machine that lead into a pod (the subresource `portforward`): one WebSocket for
// each connection, with the channels of v4.channel.k8s.io: data, then errors, each beginning with
// the port's number (k8s.io/cri-streaming, pkg/streaming/portforward/websocket.go).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/cluster_link.h"

namespace tj {

struct ForwardedPort {
  int local = 0;  // 0: any free one
  int remote = 0;
  bool operator==(const ForwardedPort&) const = default;
};
/// "LOCAL:REMOTE", "PORT" for both, ":REMOTE" for any free one.
Result<ForwardedPort> parse_forwarded_port(const std::string& text);

struct ForwardPlace {
  std::string ns;
  std::string pod;
  std::string address = "127.0.0.1";  // of this machine
};

/// What forwarding tells while it goes on.
struct ForwardReport {
  std::function<void(const std::string& local, int remote)> on_listening;
  std::function<void(const Error&)> on_failure;  // of one connection; the others go on
};

/// Runs the loop until SIGINT, SIGTERM or SIGHUP; its number. Fails where a port can't be had.
Result<int> forward_ports(const std::shared_ptr<ClusterLink>& link, const ForwardPlace& place,
                          const std::vector<ForwardedPort>& ports, const ForwardReport& report);

}  // namespace tj
