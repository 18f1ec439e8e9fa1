#include "tests/kube/api_server.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
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
}  // namespace

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
  const std::string tool = TJ_SOURCE_DIR "/tools/cluster/apiserver";
  // Says the path and closes its output once the server is up, then waits for our end to close.
  const char* const script =
      "trap '' INT; $0 up $1 || exit 1; exec >&-; cat >/dev/null; $0 down $1; rm -rf $1";
  starter_ = fork();
  if (starter_ == 0) {
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
