// Preloaded into a program that takes long to load. In place of main() it serves, and each run of
// the program that it is asked for is a fork of it, in which main() has the words, the variables
// and the files that were asked for. libtorch registers its operators before main(): 0.1 to 0.3 s
// of CPU time, which each of a test's runs would spend anew (docs/adr/0032).
//
// tests/support/warm_start.py asks, over the socket of packets whose number is in TJ_WARM_START. A
// request has three descriptors, and texts with a zero after each: how many words, the words, the
// folder, the variables. The answers are "started PID", and "ended PID STATUS" as waitpid() has it.
// When the socket is closed at the other end, all that still runs is killed.
#include <dlfcn.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Main = int(int, char**, char**);

constexpr std::size_t kRequestBytesMax = 1 << 18;
constexpr int kFiles = 3;  // standard input, output and error

Main* main_of_program;

struct Run {
  pid_t pid;
  int ended;  // a pidfd: readable when it has
};

struct Request {
  std::vector<char*> words;  // the last one is null, as main() wants it
  std::vector<char*> variables;
  const char* folder = "";
  int files[kFiles] = {-1, -1, -1};
};

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::_Exit(EXIT_FAILURE);
}

/// Into `bytes`, which the request then points to. False: nobody asks any more.
bool receive(int socket, std::vector<char>& bytes, Request& request) {
  bytes.resize(kRequestBytesMax);
  iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof request.files)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (got <= 0) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_len != CMSG_LEN(sizeof request.files)) return false;
  std::memcpy(request.files, CMSG_DATA(header), sizeof request.files);
  std::vector<char*> texts;
  for (char* text = bytes.data(); text < bytes.data() + got; text += std::strlen(text) + 1)
    texts.push_back(text);
  const auto count = std::strtoul(texts.at(0), nullptr, 10);
  for (std::size_t i = 1; i <= count; ++i) request.words.push_back(texts.at(i));
  request.words.push_back(nullptr);
  request.folder = texts.at(count + 1);
  request.variables.assign(texts.begin() + static_cast<std::ptrdiff_t>(count) + 2, texts.end());
  return true;
}

[[noreturn]] void be_the_program(Request& request) {
  for (int file = 0; file < kFiles; ++file)
    if (::dup2(request.files[file], file) < 0) give_up("dup2");
  ::close_range(kFiles, ~0U, 0);
  if (::chdir(request.folder) != 0) give_up(request.folder);
  ::clearenv();
  for (char* variable : request.variables) ::putenv(variable);
  std::exit(
      main_of_program(static_cast<int>(request.words.size() - 1), request.words.data(), environ));
}

void answer(int socket, const std::string& text) {
  if (::send(socket, text.data(), text.size(), MSG_NOSIGNAL) < 0) give_up("send");
}

int serve(int, char**, char**) {
  const char* socket_text = std::getenv("TJ_WARM_START");
  if (socket_text == nullptr) give_up("TJ_WARM_START");
  const int socket = std::atoi(socket_text);
  std::vector<Run> runs;
  for (std::vector<char> bytes;;) {
    std::vector<pollfd> polled{{.fd = socket, .events = POLLIN, .revents = 0}};
    for (const Run& run : runs) polled.push_back({.fd = run.ended, .events = POLLIN, .revents = 0});
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    for (std::size_t i = runs.size(); i-- > 0;) {
      if (polled[i + 1].revents == 0) continue;
      int status = 0;
      ::waitpid(runs[i].pid, &status, 0);
      answer(socket, "ended " + std::to_string(runs[i].pid) + " " + std::to_string(status));
      ::close(runs[i].ended);
      runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (polled[0].revents == 0) continue;
    Request request;
    if (!receive(socket, bytes, request)) break;
    const pid_t pid = ::fork();
    if (pid < 0) give_up("fork");
    if (pid == 0) be_the_program(request);
    for (int file : request.files) ::close(file);
    runs.push_back({pid, static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))});
    answer(socket, "started " + std::to_string(pid));
  }
  for (const Run& run : runs) ::kill(run.pid, SIGKILL);
  return EXIT_SUCCESS;
}

}  // namespace

/// The C library's, which calls main(): all libraries are loaded by now.
extern "C" int __libc_start_main(Main* main, int argc, char** argv, void (*init)(), void (*fini)(),
                                 void (*rtld_fini)(), void* stack_end) {
  const auto start =
      reinterpret_cast<decltype(&__libc_start_main)>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  main_of_program = main;
  return start(serve, argc, argv, init, fini, rtld_fini, stack_end);
}
