// exec and port-forward over WebSockets, against a server that does what a test says: channels, the
// command's end, and what goes wrong on the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <csignal>

#include "cli/cluster/channel_socket.h"
#include "cli/cluster/port_forward.h"
#include "cli/cluster/remote_command.h"
#include "tests/kube/fake_kubelet.h"
#include "tests/kube/rest_fixture.h"

namespace tj {
namespace {
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kSuccess = R"({"metadata":{},"status":"Success"})";

std::string exit_status(int code) {
  return R"({"status":"Failure","reason":"NonZeroExitCode","message":"command terminated",)"
         R"("details":{"causes":[{"reason":"ExitCode","message":")" +
         std::to_string(code) + R"("}]}})";
}

class Channels : public testing::Test {
 protected:
  void serve(FakeKubelet::Upgrade upgrade) {
    kubelet_ = std::make_unique<FakeKubelet>(test_ca().issue(), std::move(upgrade));
    link_ = std::make_shared<ClusterLink>(
        loop_, config_for(kubelet_->url()), [](const char*) { return std::string(); },
        RestOptions{.user_agent = "tj"});
  }
  /// The command's end in words; its output is in output_ and error_.
  std::string run(RemoteCommand command, int input = -1) {
    command.ns = "ns";
    command.pod = "p";
    const RemoteIo io{.on_output =
                          [this](std::string_view bytes) {
                            output_ += bytes;
                            return output_.size() < output_max_;
                          },
                      .on_error =
                          [this](std::string_view bytes) {
                            error_ += bytes;
                            return true;
                          },
                      .input = input};
    const Result<int> ended = run_remotely(link_, command, io);
    return ended ? std::to_string(*ended)
                 : std::string(to_string(ended.error().code)) + ": " + describe(ended.error());
  }

  boost::asio::io_context loop_;
  std::unique_ptr<FakeKubelet> kubelet_;
  std::shared_ptr<ClusterLink> link_;
  std::string output_;
  std::string error_;
  std::size_t output_max_ = 1'000'000'000;
};

TEST_F(Channels, a_command_prints_and_its_exit_code_comes_back) {
  std::string target, protocols, token;
  serve([&](FakeChannels& channels) {
    target = channels.target();
    protocols = channels.header("Sec-WebSocket-Protocol");
    token = channels.header("Authorization");
    channels.accept(kChannelProtocolV5);
    channels.write(1, "");
    channels.write(1, "out");
    channels.write(2, "err");
    channels.write(1, "put");
    channels.write(3, exit_status(42));
    channels.close();
  });
  EXPECT_EQ(run({.container = "main", .command = {"ls", "-l", "a b"}}), "42");
  EXPECT_EQ(output_, "output");
  EXPECT_EQ(error_, "err");
  EXPECT_EQ(target,
            "/api/v1/namespaces/ns/pods/p/exec?stdout=true&stderr=true&container=main&command=ls&"
            "command=-l&command=a%20b");
  EXPECT_EQ(protocols, "v5.channel.k8s.io, v4.channel.k8s.io");
  EXPECT_EQ(token, "Bearer t0");
}

TEST_F(Channels, input_is_passed_on_to_its_end) {
  std::string received;
  std::size_t messages = 0;
  serve([&](FakeChannels& channels) {
    channels.accept(kChannelProtocolV5);
    while (const auto message = channels.read()) {
      if (*message == std::string("\xff\0", 2)) break;  // channel 0 is at its end
      ASSERT_THAT(*message, StartsWith(std::string(1, '\0')));
      received += message->substr(1);
      ++messages;
      channels.write(1, message->substr(1));
    }
    channels.write(3, kSuccess);
    channels.close();
  });
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  std::string sent;
  for (int i = 0; i < 50'000; ++i) sent += std::to_string(i) + "\n";
  std::jthread writer([&] {
    std::size_t at = 0;
    while (at < sent.size()) {
      const ssize_t count = ::write(pipe[1], sent.data() + at, sent.size() - at);
      if (count <= 0) break;
      at += static_cast<std::size_t>(count);
    }
    ::close(pipe[1]);
  });
  EXPECT_EQ(run({.command = {"cat"}, .with_input = true}, pipe[0]), "0");
  ::close(pipe[0]);
  EXPECT_EQ(received.size(), sent.size());
  EXPECT_EQ(output_, sent);
  EXPECT_GT(messages, 1U);
}

TEST_F(Channels, input_from_a_file_is_read_too) {
  serve([&](FakeChannels& channels) {
    channels.accept(kChannelProtocolV5);
    std::string all;
    while (const auto message = channels.read()) {
      if ((*message)[0] != '\0') break;
      all += message->substr(1);
    }
    channels.write(1, all);
    channels.write(3, kSuccess);
  });
  FILE* const file = std::tmpfile();
  std::fputs("from a file", file);
  std::fflush(file);
  std::rewind(file);
  EXPECT_EQ(run({.command = {"cat"}, .with_input = true}, ::fileno(file)), "0");
  EXPECT_EQ(output_, "from a file");
  std::fclose(file);
}

TEST_F(Channels, what_goes_wrong_is_said) {
  serve([](FakeChannels& channels) { channels.refuse(403, status_body(403, "no exec for you")); });
  EXPECT_THAT(run({.command = {"x"}}), AllOf(StartsWith("forbidden: GET https://127.0.0.1:"),
                                             HasSubstr("/pods/p/exec: no exec for you")));
  serve([](FakeChannels& channels) {
    channels.refuse(404, status_body(404, "pods \\\"p\\\" not found"));
  });
  EXPECT_THAT(run({.command = {"x"}}), StartsWith("not_found: "));
  serve([](FakeChannels& channels) { channels.refuse(200, "hello"); });
  EXPECT_THAT(run({.command = {"x"}}), HasSubstr("HTTP 200 instead of a WebSocket"));
  serve([](FakeChannels& channels) {
    channels.accept(kChannelProtocolV5);
    channels.write(3, R"({"status":"Failure","message":"container not running"})");
  });
  EXPECT_THAT(run({.command = {"x"}}), HasSubstr("container not running"));
  serve([](FakeChannels& channels) {
    channels.accept(kChannelProtocolV5);
    channels.close();
  });
  EXPECT_THAT(run({.command = {"x"}}), HasSubstr("the server ended it before the command's end"));
  serve([](FakeChannels& channels) {
    channels.accept(kChannelProtocolV5);
    channels.write(1, "a");
    channels.drop();
  });
  EXPECT_THAT(run({.command = {"x"}}), HasSubstr("the connection broke"));
  kubelet_.reset();
  EXPECT_THAT(run({.command = {"x"}}), HasSubstr("connection refused"));
}

TEST_F(Channels, who_wants_no_more_ends_it) {
  serve([](FakeChannels& channels) {
    channels.accept(kChannelProtocolV4);
    for (;;) channels.write(1, std::string(1000, 'x'));
  });
  output_max_ = 10'000;
  EXPECT_EQ(run({.command = {"yes"}}), "0");
  EXPECT_GE(output_.size(), 10'000U);
}

TEST_F(Channels, a_signal_ends_it) {
  serve([](FakeChannels& channels) {
    channels.accept(kChannelProtocolV5);
    channels.write(1, "ready");
    while (channels.read()) {}
  });
  const auto raise_when_ready = [this](std::string_view bytes) {
    output_ += bytes;
    std::raise(SIGTERM);
    return true;
  };
  const RemoteIo io{.on_output = raise_when_ready, .on_error = raise_when_ready};
  const Result<int> ended = run_remotely(link_, {.ns = "n", .pod = "p", .command = {"x"}}, io);
  ASSERT_TRUE(ended) << describe(ended.error());
  EXPECT_EQ(*ended, 128 + SIGTERM);
}

TEST(ExitCodes, are_read_from_the_status) {
  EXPECT_EQ(*exit_code_of(kSuccess), 0);
  EXPECT_EQ(*exit_code_of(exit_status(255)), 255);
  for (const int wrong : {0, 256, -1}) EXPECT_FALSE(exit_code_of(exit_status(wrong))) << wrong;
  EXPECT_THAT(describe(exit_code_of("garbage").error()), HasSubstr("did not say how it ended"));
}

TEST(ForwardedPorts, are_pairs) {
  EXPECT_EQ(*parse_forwarded_port("8080:80"), (ForwardedPort{8080, 80}));
  EXPECT_EQ(*parse_forwarded_port("80"), (ForwardedPort{80, 80}));
  EXPECT_EQ(*parse_forwarded_port(":80"), (ForwardedPort{0, 80}));
  EXPECT_EQ(*parse_forwarded_port("0:80"), (ForwardedPort{0, 80}));
  for (const char* wrong : {"", ":", "a", "1:2:3", "80:", "80:0", "80:65536", "-1:80", "1 :2"})
    EXPECT_FALSE(parse_forwarded_port(wrong)) << wrong;
}

/// Says hello to a forwarded port, and gives back all that comes.
std::string talk(const std::string& local) {
  boost::asio::io_context io;
  boost::asio::ip::tcp::socket socket(io);
  const auto port = static_cast<unsigned short>(std::stoi(local.substr(local.find(':') + 1)));
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), port});
  boost::asio::write(socket, boost::asio::buffer(std::string("hello")));
  std::string all;
  boost::system::error_code ended;
  boost::asio::read(socket, boost::asio::dynamic_buffer(all), ended);
  return all;
}

TEST_F(Channels, a_forwarded_port_leads_into_the_pod) {
  const std::string port("\x50\0", 2);  // 80, the lower byte first
  serve([&](FakeChannels& channels) {
    EXPECT_EQ(channels.target(), "/api/v1/namespaces/ns/pods/p/portforward?ports=80");
    channels.accept(kChannelProtocolV4);
    channels.write(0, port);
    channels.write(1, port);
    const auto said = channels.read();
    if (said) channels.write(0, "you said " + said->substr(1));
    channels.close();
  });
  std::vector<std::string> answers;
  std::string local;
  std::jthread client;
  const ForwardReport report{
      .on_listening =
          [&](const std::string& where, int) {
            client = std::jthread([&answers, where] {
              for (int i = 0; i < 3; ++i) answers.push_back(talk(where));
              ::kill(::getpid(), SIGTERM);
            });
          },
      .on_failure = [](const Error& error) { ADD_FAILURE() << describe(error); }};
  const auto ended = forward_ports(link_, {.ns = "ns", .pod = "p"}, {{0, 80}}, report);
  ASSERT_TRUE(ended) << describe(ended.error());
  EXPECT_EQ(*ended, SIGTERM);
  client.join();
  EXPECT_THAT(answers, ElementsAre("you said hello", "you said hello", "you said hello"));
}

TEST_F(Channels, a_port_that_nobody_serves_is_said_and_the_others_go_on) {
  const std::string port("\x50\0", 2);
  serve([&](FakeChannels& channels) {
    channels.accept(kChannelProtocolV4);
    channels.write(0, port);
    channels.write(1, port + "connection ");
    channels.write(1, "refused");
    channels.close();
  });
  std::vector<std::string> failures;
  std::jthread client;
  const ForwardReport report{
      .on_listening =
          [&](const std::string& where, int) {
            client = std::jthread([where] {
              talk(where);
              talk(where);
              ::kill(::getpid(), SIGTERM);
            });
          },
      .on_failure = [&](const Error& error) { failures.push_back(describe(error)); }};
  ASSERT_TRUE(forward_ports(link_, {.ns = "ns", .pod = "p"}, {{0, 80}}, report));
  client.join();
  EXPECT_THAT(failures, ElementsAre("connection refused", "connection refused"));
  const auto taken =
      forward_ports(link_, {.ns = "ns", .pod = "p", .address = "1.2.3.4"}, {{0, 80}}, report);
  ASSERT_FALSE(taken);
  EXPECT_THAT(describe(taken.error()), HasSubstr("1.2.3.4:0: can't listen"));
}

}  // namespace
}  // namespace tj
