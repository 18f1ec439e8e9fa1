#include "trainer/launch/statement_exchange.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <stop_token>
#include <thread>
#include <vector>

#include "contract/names.h"
#include "trainer/launch/host.h"
#include "trainer/process/unique_fd.h"

namespace tj::trainer {
namespace {
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kGreeting = "trainingjob-claim-1";
constexpr milliseconds kLook{50};  // between two looks at clocks and signals
constexpr milliseconds kConnectTry{1000};
constexpr milliseconds kLeave{2000};       // for the others to read their answer
constexpr std::size_t kLineMax = 8192;     // a refusal names many statements
constexpr std::size_t kStrangersMax = 64;  // connections beyond those that are expected
constexpr std::size_t kFields = 6;

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');) fields.push_back(field);
  return fields;
}

std::string without_breaks(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c == '\t' || c == '\n'; }, ' ');
  return text;
}

std::string answer_line(const Settlement& settlement) {
  if (const auto* const error = std::get_if<Error>(&settlement))
    return "refused\t" + without_breaks(error->message) + "\n";
  const auto& decision = std::get<WorldDecision>(settlement);
  return std::string(to_string(decision.meaning)) + "\t" + std::to_string(decision.local_rank) +
         "\t" + without_breaks(decision.because) + "\n";
}

/// Sends all of a short line, or gives up: who doesn't read gets no answer.
void send_line(int socket, const std::string& line) {
  (void)::send(socket, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/// The launcher of rank 0 in its role as the one who collects.
class Collector {
 public:
  Collector(int listening, const StatementRequest& request)
      : listening_(listening),
        request_(request),
        deadline_(steady_clock::now() + request.timeout),
        last_news_(steady_clock::now()) {}

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      wait_for_news();
      take_new();
      read_statements();
      if (const auto error = undecidable()) return answer([&](const Statement&) { return *error; });
      const auto statements = all_statements();
      const bool is_quiet = steady_clock::now() - last_news_ >= request_.quiet;
      const auto settlement = weigh_statements(statements, request_.mine.rank, is_quiet);
      if (const auto* const undecided = std::get_if<Undecided>(&settlement)) {
        tell(undecided->text, statements);
        continue;
      }
      return answer([&](const Statement& statement) {
        return weigh_statements(statements, statement.rank, is_quiet);
      });
    }
  }

 private:
  struct Visitor {
    UniqueFd socket;
    std::string text;
    std::optional<Statement> statement;
    bool is_gone = false;
  };

  void tell(const std::string& what, const std::vector<Statement>& statements) {
    if (!request_.say || statements.empty() || std::exchange(told_, what) == what) return;
    request_.say("WORLD_SIZE: " + what + "; so far: " + describe_statements(statements));
  }

  void wait_for_news() {
    std::vector<pollfd> polled{{.fd = listening_.value(), .events = POLLIN, .revents = 0}};
    for (const auto& visitor : visitors_)
      polled.push_back({.fd = visitor.socket.value(), .events = POLLIN, .revents = 0});
    ::poll(polled.data(), polled.size(), static_cast<int>(kLook.count()));
  }

  void take_new() {
    const auto room = static_cast<std::size_t>(request_.mine.world_size) + kStrangersMax;
    pollfd polled{.fd = listening_.value(), .events = POLLIN, .revents = 0};
    while (::poll(&polled, 1, 0) == 1) {
      UniqueFd socket(
          ::accept4(listening_.value(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.open()) return;
      if (visitors_.size() >= room) continue;  // closes it
      visitors_.push_back({.socket = std::move(socket), .text = {}, .statement = {}});
    }
  }

  void read_statements() {
    for (auto& visitor : visitors_) {
      std::array<char, 1024> bytes{};
      const auto got = ::recv(visitor.socket.value(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (got > 0) visitor.text.append(bytes.data(), static_cast<std::size_t>(got));
      // A launcher that ends takes its statement with it; who speaks another language is sent away.
      visitor.is_gone = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) ||
                        visitor.text.size() > kLineMax;
      const auto end = visitor.text.find('\n');
      if (visitor.statement || end == std::string::npos) continue;
      visitor.statement = statement_from_line(visitor.text.substr(0, end));
      visitor.is_gone = !visitor.statement;
      if (visitor.statement) last_news_ = steady_clock::now();
    }
    std::erase_if(visitors_, [](const Visitor& visitor) { return visitor.is_gone; });
  }

  std::vector<Statement> all_statements() const {
    std::vector<Statement> statements;
    for (const auto& visitor : visitors_) {
      if (visitor.statement) statements.push_back(*visitor.statement);
    }
    return statements;
  }

  std::optional<Error> undecidable() const {
    if (steady_clock::now() < deadline_) return std::nullopt;
    const auto statements = all_statements();
    return Error{
        .code = Code::timeout,
        .message =
            "may count workers or processes, and " + std::to_string(statements.size()) +
            " launchers came to say what they were given: " + describe_statements(statements) +
            "; --convention workers or --convention processes says what it counts",
        .subject = "WORLD_SIZE"};
  }

  void answer(const std::function<Settlement(const Statement&)>& settlement_for) {
    listening_.reset();
    for (auto& visitor : visitors_) {
      if (visitor.statement)
        send_line(visitor.socket.value(), answer_line(settlement_for(*visitor.statement)));
      ::shutdown(visitor.socket.value(), SHUT_WR);
    }
    // They close first, and the port is free at once.
    const auto end = steady_clock::now() + kLeave;
    while (!visitors_.empty() && steady_clock::now() < end) {
      std::vector<pollfd> polled;
      for (const auto& visitor : visitors_)
        polled.push_back({.fd = visitor.socket.value(), .events = POLLIN, .revents = 0});
      ::poll(polled.data(), polled.size(), static_cast<int>(kLook.count()));
      read_statements();
    }
  }

  UniqueFd listening_;
  const StatementRequest& request_;
  steady_clock::time_point deadline_;
  steady_clock::time_point last_news_;
  std::vector<Visitor> visitors_;
  std::string told_;
};

Error interrupted() {
  return {.code = Code::unavailable,
          .message = "asked to stop while waiting for the other launchers",
          .subject = "WORLD_SIZE"};
}

/// What the collector has answered; absent: nobody there who knows.
std::optional<Result<WorldDecision>> read_answer(const std::string& text) {
  const auto fields = fields_of(text.substr(0, text.find('\n')));
  if (text.find('\n') == std::string::npos || fields.size() < 2) return std::nullopt;
  if (fields[0] == "refused")
    return Error{.code = Code::invalid, .message = fields[1], .subject = "WORLD_SIZE"};
  const auto meaning = world_meaning_named(fields[0]);
  const auto local_rank = parse_int("local rank", fields[1], 0, kNprocMax);
  if (!meaning || !local_rank || fields.size() < 3) return std::nullopt;
  return WorldDecision{.meaning = *meaning, .local_rank = *local_rank, .because = fields[2]};
}

bool must_stop(const StatementRequest& request) {
  return request.is_asked_to_stop && request.is_asked_to_stop();
}

/// One visit to whoever listens there; absent: once more.
std::optional<Result<WorldDecision>> visit(const StatementRequest& request, Deadline deadline) {
  auto connected =
      connect_to(request.master, std::min(deadline, steady_clock::now() + kConnectTry));
  if (!connected) return std::nullopt;
  const UniqueFd socket(*connected);
  send_line(socket.value(), statement_line(request.mine));
  std::string text;
  while (steady_clock::now() < deadline && text.size() < kLineMax) {
    if (must_stop(request)) return interrupted();
    pollfd polled{.fd = socket.value(), .events = POLLIN, .revents = 0};
    if (::poll(&polled, 1, static_cast<int>(kLook.count())) <= 0) continue;
    std::array<char, 1024> bytes{};
    const auto got = ::recv(socket.value(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return read_answer(text);
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return std::nullopt;
}

}  // namespace

std::string statement_line(const Statement& statement) {
  return std::string(kGreeting) + "\t" + std::to_string(statement.world_size) + "\t" +
         std::to_string(statement.rank) + "\t" + std::to_string(statement.gpus) + "\t" +
         without_breaks(statement.machine) + "\t" + without_breaks(statement.node) + "\n";
}

std::optional<Statement> statement_from_line(const std::string& line) {
  const auto fields = fields_of(line);
  if (fields.size() != kFields || fields[0] != kGreeting) return std::nullopt;
  const auto world_size = parse_int("world size", fields[1], 1, INT_MAX);
  const auto rank = parse_int("rank", fields[2], 0, INT_MAX);
  const auto gpus = parse_int("GPUs", fields[3], 1, kNprocMax);
  if (!world_size || !rank || !gpus) return std::nullopt;
  return Statement{.world_size = *world_size,
                   .rank = *rank,
                   .gpus = *gpus,
                   .machine = fields[4],
                   .node = fields[5]};
}

std::string machine_of_statements(const EnvLookup& lookup) {
  std::error_code unreadable;
  return lookup(names::kEnvNodeName).value_or("") + "/" + this_host().name + "/" +
         std::filesystem::read_symlink("/proc/self/ns/pid", unreadable).string();
}

Result<WorldDecision> exchange_statements(const StatementRequest& request) {
  std::jthread collecting;
  if (request.mine.rank == 0) {
    auto listening = ListeningSocket::open(request.master.port);
    if (!listening) return listening.error();
    collecting =
        std::jthread([&request, fd = std::move(*listening).release()](const std::stop_token& stop) {
          Collector(fd, request).run(stop);
        });
  }
  // The collector's own deadline comes first: it knows who is missing.
  const Deadline deadline = steady_clock::now() + request.timeout + kLeave;
  while (steady_clock::now() < deadline) {
    if (must_stop(request)) return interrupted();
    if (auto answer = visit(request, deadline)) return *std::move(answer);
    std::this_thread::sleep_for(kLook);  // lint-ok(sleep): a bounded retry; nothing tells when
  }
  return Error{.code = Code::timeout,
               .message = "may count workers or processes, and nobody answers at " +
                          request.master.host + ":" + std::to_string(request.master.port) +
                          ", where the launcher of rank 0 should be: that port must be open "
                          "between the nodes, or --convention workers or processes says what it "
                          "counts",
               .subject = "WORLD_SIZE"};
}

}  // namespace tj::trainer
