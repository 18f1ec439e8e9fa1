// A WebSocket of Kubernetes' remote commands (subprotocols v5.channel.k8s.io and v4): the first
// byte of each message is the number of its channel. One thread, that of the loop.
#pragma once
#include <utility>  // boost/asio/awaitable.hpp of 1.74 uses std::exchange without it

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/cluster/cluster_link.h"

namespace tj {

inline constexpr const char* kChannelProtocolV5 = "v5.channel.k8s.io";
inline constexpr const char* kChannelProtocolV4 = "v4.channel.k8s.io";

struct ChannelRequest {
  std::string target;     // path and query, percent-encoded
  std::string protocols;  // in the order in which we like them, parted by ", "
};

struct ChannelMessage {
  int channel = 0;
  std::string bytes;
};

class ChannelSocket {
 public:
  /// Fails as a request does: a 404 is not_found, ... Within `interrupt` its connection.
  static boost::asio::awaitable<Result<std::unique_ptr<ChannelSocket>>> open(
      std::shared_ptr<ClusterLink> link, ChannelRequest request, Interrupt& interrupt);

  explicit ChannelSocket(std::unique_ptr<Connection> connection);

  /// Which of the protocols the server has chosen.
  const std::string& protocol() const { return protocol_; }

  /// None: the server has closed it in order.
  boost::asio::awaitable<Result<std::optional<ChannelMessage>>> read();
  /// Only one at a time; others wait for their turn.
  boost::asio::awaitable<Result<void>> write(int channel, std::string bytes);
  /// v5: there is no more on this channel. With v4 nobody can be told.
  boost::asio::awaitable<Result<void>> end_of(int channel);

 private:
  using Stream = boost::beast::websocket::stream<WireStream>;
  boost::asio::awaitable<Result<void>> shake_hands(const ClusterLink& link,
                                                   const ChannelRequest& request,
                                                   const Authority& authority);

  Stream stream_;
  boost::beast::flat_buffer buffer_;
  boost::asio::steady_timer turn_;  // its end: the one who writes is done
  bool is_writing_ = false;
  std::string protocol_;
};

}  // namespace tj
