#include "operator/local/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "operator/local/keeper.h"

namespace tj {
namespace {

namespace asio = boost::asio;

struct Pipe {
  int read_fd = -1;
  int write_fd = -1;
  bool open() {
    std::array<int, 2> fds{};
    if (pipe2(fds.data(), O_CLOEXEC) != 0) return false;
    read_fd = fds[0];
    write_fd = fds[1];
    return true;
  }
};

Error system_error(const char* what) {
  return Error{.code = Code::internal,
               .message = std::string(what) + ": " + std::strerror(errno),
               .subject = "start of a process",
               .retry_after = {}};
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

struct ChildProcess::State : std::enable_shared_from_this<ChildProcess::State> {
  State(asio::io_context& loop, ChildHandlers the_handlers)
      : output(loop), notes(loop), handlers(std::move(the_handlers)) {}

  void read_output();
  void read_notes();
  void take_output(std::string_view bytes);
  void take_note(const KeeperNote& note);
  void finish_if_done();

  asio::posix::stream_descriptor output;
  asio::posix::stream_descriptor notes;
  ChildHandlers handlers;
  std::array<char, 16 * 1024> output_buffer{};
  std::array<char, sizeof(KeeperNote)> note_buffer{};
  std::size_t note_bytes = 0;
  std::string line;
  ChildEnd end{.exit_code = 128 + SIGKILL, .start_errno = 0, .keeper_lost = true};
  int keeper_pid = -1;  // -1: reaped
  bool output_done = false;
  bool notes_done = false;
  bool cancelled = false;
};

void ChildProcess::State::read_output() {
  output.async_read_some(asio::buffer(output_buffer),
                         [self = shared_from_this()](auto failure, std::size_t count) {
                           if (self->cancelled) return;
                           self->take_output({self->output_buffer.data(), count});
                           if (!failure) return self->read_output();
                           if (!self->line.empty())
                             self->handlers.on_line(std::exchange(self->line, {}));
                           self->output_done = true;
                           self->finish_if_done();
                         });
}

void ChildProcess::State::take_output(std::string_view bytes) {
  if (bytes.empty()) return;
  handlers.on_output(bytes);
  for (const char c : bytes) {
    if (c != '\n') line += c;
    if (c != '\n' && line.size() < kLineBytesMax) continue;
    if (line.ends_with('\r')) line.pop_back();
    handlers.on_line(std::exchange(line, {}));
    if (cancelled) return;
  }
}

void ChildProcess::State::read_notes() {
  const auto rest = asio::buffer(note_buffer.data() + note_bytes, note_buffer.size() - note_bytes);
  notes.async_read_some(rest, [self = shared_from_this()](auto failure, std::size_t count) {
    if (self->cancelled) return;
    self->note_bytes += count;
    if (self->note_bytes == self->note_buffer.size()) {
      KeeperNote note;
      std::memcpy(&note, self->note_buffer.data(), sizeof note);
      self->note_bytes = 0;
      self->take_note(note);
    }
    if (!failure) return self->read_notes();
    self->notes_done = true;
    self->finish_if_done();
  });
}

void ChildProcess::State::take_note(const KeeperNote& note) {
  if (note.kind == KeeperNote::start_failed) end.start_errno = note.value;
  if (note.kind == KeeperNote::ended) end.exit_code = note.value;
  if (note.kind != KeeperNote::started) end.keeper_lost = false;
}

/// The keeper's pipe closes when it exits, and then it has ended all that could hold the output
/// open.
void ChildProcess::State::finish_if_done() {
  if (!notes_done || !output_done || keeper_pid < 0) return;
  waitpid(std::exchange(keeper_pid, -1), nullptr, 0);
  handlers.on_end(end);
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(asio::io_context& loop,
                                                          const ChildCommand& command,
                                                          ChildHandlers handlers) {
  Pipe output;
  Pipe notes;
  if (!output.open()) return system_error("pipe");
  auto state = std::make_shared<State>(loop, std::move(handlers));
  state->output.assign(output.read_fd);
  if (!notes.open()) {
    close(output.write_fd);
    return system_error("pipe");
  }
  state->notes.assign(notes.read_fd);
  std::vector<std::string> argv = command.argv;
  std::vector<std::string> env;
  for (const EnvVar& variable : command.env) env.push_back(variable.name + "=" + variable.value);
  const std::vector<char*> argv_pointers = pointers(argv);
  const std::vector<char*> env_pointers = pointers(env);
  const KeeperOrder order{.output_fd = output.write_fd,
                          .notes_fd = notes.write_fd,
                          .program = command.program.c_str(),
                          .argv = argv_pointers.data(),
                          .env = env_pointers.data(),
                          .working_folder = command.working_folder.c_str(),
                          .parent_pid = getpid()};
  const int pid = fork();
  if (pid == 0) run_keeper(order);
  const int fork_errno = errno;
  close(output.write_fd);
  close(notes.write_fd);
  errno = fork_errno;
  if (pid < 0) return system_error("fork");
  state->keeper_pid = pid;
  state->read_output();
  state->read_notes();
  return std::unique_ptr<ChildProcess>(new ChildProcess(std::move(state)));
}

void ChildProcess::terminate() {
  if (state_->keeper_pid > 0) ::kill(state_->keeper_pid, SIGUSR1);
}

void ChildProcess::kill() {
  if (state_->keeper_pid > 0) ::kill(state_->keeper_pid, SIGTERM);
}

ChildProcess::~ChildProcess() {
  state_->cancelled = true;
  boost::system::error_code ignored;
  state_->output.close(ignored);
  state_->notes.close(ignored);
  if (state_->keeper_pid < 0) return;
  kill();
  waitpid(std::exchange(state_->keeper_pid, -1), nullptr, 0);
}

}  // namespace tj
