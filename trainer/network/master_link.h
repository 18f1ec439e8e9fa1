// The way to the master, with plain sockets and without torch: names, routes, ports, each with a
// deadline.
#pragma once
#include <chrono>
#include <string>

#include "contract/result.h"

namespace tj::trainer {

using Deadline = std::chrono::steady_clock::time_point;

struct Endpoint {
  std::string host;
  int port = 0;
};

/// A listening socket, closed unless released.
class ListeningSocket {
 public:
  /// All addresses, IPv6 and IPv4. Fails with Code::conflict when the port is taken; the error
  /// names it.
  static Result<ListeningSocket> open(int port);
  int release() && { return std::exchange(descriptor_, -1); }
  ListeningSocket(ListeningSocket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

 private:
  explicit ListeningSocket(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

/// Local address of the route to `master`, a numeric address: the interface that the others can
/// reach. A name that does not resolve is tried again until the deadline.
Result<std::string> local_address_towards(const Endpoint& master, Deadline deadline);

/// The same with one try that is over within `limit`, however long a name server takes.
Result<std::string> local_address_now(const Endpoint& master, std::chrono::milliseconds limit);

/// A connected, non-blocking socket that the caller closes; one attempt for each address of the
/// name. Fails with Code::unavailable and the last cause.
Result<int> connect_to(const Endpoint& master, Deadline deadline);

/// Returns when somebody accepts connections there. Fails with Code::timeout and the last cause.
Result<void> wait_until_listening(const Endpoint& master, Deadline deadline);

}  // namespace tj::trainer
