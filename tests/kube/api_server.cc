#include "tests/kube/api_server.h"

#include "tests/places.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace tj {
namespace {
std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 512> part{};
  ssize_t size = 0;
  while ((size = read(descriptor, part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  close(descriptor);
  return text;
}

std::string file_text(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  return file < 0 ? std::string() : read_all(file);
}
}  // namespace

/// Through etcd's JSON gateway; its address stands on the command line of its process.
bool ApiServer::compact(const std::string& revision) const {
  const std::string pid = file_text(dir_ + "/etcd.pid");
  const std::string command = file_text("/proc/" + pid.substr(0, pid.find('\n')) + "/cmdline");
  const std::string flag = "--listen-client-urls=http://127.0.0.1:";
  const std::size_t found = command.find(flag);
  if (found == std::string::npos) return false;
  const std::string port = command.c_str() + found + flag.size();  // up to the next NUL
  boost::asio::ip::tcp::iostream etcd("127.0.0.1", port);
  etcd.expires_after(std::chrono::seconds(20));
  const std::string body = "{\"revision\":\"" + revision + "\"}";
  etcd << "POST /v3/kv/compaction HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\n"
       << "Content-Type: application/json\r\nContent-Length: " << body.size() << "\r\n\r\n"
       << body << std::flush;
  std::string protocol;
  int status = 0;
  etcd >> protocol >> status;
  return status == 200;
}

Result<void> ApiServer::start() {
  if (const char* given = std::getenv("TJ_TEST_KUBECONFIG")) {
    kubeconfig_ = given;
    return {};
  }
  std::string folder = "/tmp/tj_apiserver_XXXXXX";
  if (mkdtemp(folder.data()) == nullptr)
    return Error{Code::internal, "no temporary folder", "/tmp", {}};
  std::array<int, 2> leash{};
  std::array<int, 2> output{};
  TJ_CHECK(pipe2(leash.data(), O_CLOEXEC) == 0 && pipe2(output.data(), O_CLOEXEC) == 0, "pipe");
  const std::string tool = source_dir() + "/tools/cluster/apiserver";
  // Says the path and closes its output once the server is up, then waits for our end to close.
  const char* const script =
      "$0 up $1 || { $0 down $1; rm -rf $1; exit 1; }; exec >&-; cat >/dev/null; $0 "
      "down $1; rm -rf $1";
  starter_ = fork();
  if (starter_ == 0) {
    setsid();  // a signal to the test's group must not hit the one who cleans up
    dup2(leash[0], 0);
    dup2(output[1], 1);
    execl("/bin/bash", "bash", "-c", script, tool.c_str(), folder.c_str(), nullptr);
    _exit(127);
  }
  close(leash[0]);
  close(output[1]);
  leash_ = leash[1];
  dir_ = folder;
  kubeconfig_ = read_all(output[0]);
  while (kubeconfig_.ends_with('\n')) kubeconfig_.pop_back();
  if (!kubeconfig_.empty()) return {};
  stop();
  return Error{Code::unavailable, "did not start a server; its reason stands above", tool, {}};
}

void ApiServer::stop() {
  if (leash_ >= 0) close(std::exchange(leash_, -1));
  if (starter_ > 0) waitpid(std::exchange(starter_, -1), nullptr, 0);
}

}  // namespace tj
