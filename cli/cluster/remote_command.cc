#include "cli/cluster/remote_command.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>

#include "cli/cluster/channel_socket.h"
#include "cli/cluster/terminal.h"
#include "cli/terminal_size.h"
#include "operator/api/read.h"

namespace tj {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace read;

/// k8s.io/apimachinery, pkg/util/remotecommand/constants.go
enum Channel { input_channel, output_channel, error_channel, status_channel, size_channel };

constexpr std::size_t kInputBytes = 32 * 1024;
constexpr int kExitCodeMax = 255;
constexpr int kSignalled = 128;  // as a shell says it

/// All on the loop. Ends when the server has said how the command ended, or can't any more.
class Conversation : public std::enable_shared_from_this<Conversation> {
 public:
  Conversation(std::shared_ptr<ClusterLink> link, const RemoteCommand& command, const RemoteIo& io)
      : link_(std::move(link)),
        command_(command),
        io_(io),
        signals_(link_->loop(), SIGINT, SIGTERM, SIGHUP),
        resizes_(link_->loop()),
        input_(link_->loop()) {}

  void start() {
    start_on(link_->loop(), [self = shared_from_this()] { return self->run(self); });
    signals_.async_wait([self = shared_from_this()](const error_code& stopped, int number) {
      if (!stopped) self->finish(kSignalled + number);
    });
  }

  std::optional<Result<int>> result;

 private:
  asio::awaitable<void> run([[maybe_unused]] std::shared_ptr<Conversation> self) {
    ChannelRequest request{
        .target = exec_target(command_),
        .protocols = kChannelProtocolV5 + std::string(", ") + kChannelProtocolV4};
    auto opened = co_await ChannelSocket::open(link_, std::move(request), interrupt_);
    if (!opened) {
      finish(opened.error());
      co_return;
    }
    socket_ = std::move(*opened);
    if (command_.with_input) start_input();
    if (command_.is_terminal) start_resizing();
    co_await listen();
  }

  asio::awaitable<void> listen() {
    while (!result) {
      const auto message = co_await socket_->read();
      if (result) co_return;
      if (!message) {
        finish(message.error());
      } else if (!*message) {
        finish(Error{Code::unavailable, "the server ended it before the command's end", "", {}});
      } else if ((*message)->channel == status_channel) {
        finish(exit_code_of((*message)->bytes));
      } else if (!pass_on(**message)) {
        finish(0);
      }
    }
  }

  bool pass_on(const ChannelMessage& message) {
    if (message.channel == output_channel) return io_.on_output(message.bytes);
    return message.channel != error_channel || io_.on_error(message.bytes);
  }

  void start_input() {
    error_code failed;
    input_.assign(::dup(io_.input), failed);
    start_on(link_->loop(), [self = shared_from_this()] { return self->pass_input(self); });
  }

  /// Waits, then reads what is there: the descriptor is shared with who started us, and must stay
  /// one that blocks. A file can't be waited for, and never blocks.
  asio::awaitable<void> pass_input([[maybe_unused]] std::shared_ptr<Conversation> self) {
    std::array<char, kInputBytes> part{};
    while (!result) {
      error_code failed;
      co_await input_.async_wait(asio::posix::stream_descriptor::wait_read,
                                 asio::redirect_error(asio::use_awaitable, failed));
      if (result || failed == asio::error::operation_aborted) co_return;
      const ssize_t count = ::read(input_.native_handle(), part.data(), part.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      std::string bytes(part.data(), static_cast<std::size_t>(count));
      const Result<void> written = co_await socket_->write(input_channel, std::move(bytes));
      if (!written) co_return;  // the reader hears of it, too
    }
    const Result<void> ended = co_await socket_->end_of(input_channel);
    static_cast<void>(ended);
  }

  void start_resizing() {
    error_code ignored;
    resizes_.add(SIGWINCH, ignored);
    start_on(link_->loop(), [self = shared_from_this()] { return self->pass_sizes(self); });
  }

  asio::awaitable<void> pass_sizes([[maybe_unused]] std::shared_ptr<Conversation> self) {
    while (!result) {
      const TerminalSize size = terminal_size(io_.input);
      std::string text = "{\"Width\":" + std::to_string(size.columns) +
                         ",\"Height\":" + std::to_string(size.rows) + "}";
      if (size.columns > 0) {
        const Result<void> written = co_await socket_->write(size_channel, std::move(text));
        if (!written) co_return;
      }
      error_code stopped;
      co_await resizes_.async_wait(asio::redirect_error(asio::use_awaitable, stopped));
      if (stopped) co_return;
    }
  }

  void finish(Result<int> end) {
    if (result) return;
    result = std::move(end);
    error_code ignored;
    signals_.cancel(ignored);
    resizes_.cancel(ignored);
    input_.close(ignored);
    interrupt_.fire();
  }

  const std::shared_ptr<ClusterLink> link_;
  const RemoteCommand& command_;
  const RemoteIo& io_;
  Interrupt interrupt_;
  std::unique_ptr<ChannelSocket> socket_;
  asio::signal_set signals_;
  asio::signal_set resizes_;
  asio::posix::stream_descriptor input_;
};

}  // namespace

std::string exec_target(const RemoteCommand& command) {
  std::string target = "/api/v1/namespaces/" + percent_encode(command.ns) + "/pods/" +
                       percent_encode(command.pod) + "/exec?stdout=true";
  if (!command.is_terminal) target += "&stderr=true";
  if (command.with_input) target += "&stdin=true";
  if (command.is_terminal) target += "&tty=true";
  if (!command.container.empty()) target += "&container=" + percent_encode(command.container);
  for (const std::string& word : command.command) target += "&command=" + percent_encode(word);
  return target;
}

Result<int> exit_code_of(const std::string& text) {
  const nlohmann::json status = parse(text);
  if (string_at(status, "status") == "Success") return 0;
  for (const auto& cause : array_at(object_at(status, "details"), "causes")) {
    if (string_at(cause, "reason") != "ExitCode") continue;
    const std::string number = string_at(cause, "message");
    int code = 0;
    const auto read = std::from_chars(number.data(), number.data() + number.size(), code);
    const bool is_code = read.ec == std::errc{} && code > 0 && code <= kExitCodeMax;
    if (is_code && read.ptr == number.data() + number.size()) return code;
  }
  const std::string message = string_at(status, "message");
  return Error{
      Code::internal, message.empty() ? "the server did not say how it ended" : message, "", {}};
}

Result<int> run_remotely(const std::shared_ptr<ClusterLink>& link, const RemoteCommand& command,
                         const RemoteIo& io) {
  const auto conversation = std::make_shared<Conversation>(link, command, io);
  conversation->start();
  link->loop().restart();
  while (!conversation->result && link->loop().run_one() > 0) {}
  // The coroutines that are left see that it has ended; they refer to `command` and `io`.
  link->loop().restart();
  while (link->loop().poll_one() > 0) {}
  if (!conversation->result) return Error{Code::internal, "nothing is left to wait for", "", {}};
  return *conversation->result;
}

}  // namespace tj
