// A kubeconfig as a person brings it along, read for the operator and for a person.
#include "operator/kube/kube_config.h"
#include "operator/kube/server_url.h"
#include "tests/fuzz/fuzzed.h"

namespace {

void check_program(const std::string& path) {
  const auto config = tj::load_kube_config(
      {.kubeconfig = path, .context = {}, .env = [](const char*) { return ""; }});
  if (!config) return;
  TJ_CHECK(config->server.starts_with("https://"), "the server is always verified");
  TJ_CHECK(!config->insecure_skip_tls_verify, "the server is always verified");
  TJ_CHECK(!config->exec && config->proxy_url.empty(), "no program is started, no proxy asked");
}

void check_person(const std::string& path) {
  const auto config = tj::load_kube_config({.kubeconfig = path,
                                            .context = {},
                                            .env = [](const char*) { return ""; },
                                            .reader = tj::ConfigReader::person});
  if (!config) return;
  const auto url = tj::parse_server_url(config->server);
  TJ_CHECK(url.ok() && url->port > 0 && !url->host.empty(), "the server can be connected to");
  TJ_CHECK(tj::host_and_port(*url).find_first_of("\r\n ") == std::string::npos, "fits in a header");
  TJ_CHECK(config->token.find_first_of("\r\n") == std::string::npos, "fits in a header");
  if (config->exec) TJ_CHECK(!config->exec->command.empty(), "there is a program to start");
  if (!config->proxy_url.empty())
    TJ_CHECK(tj::parse_server_url(config->proxy_url).ok(), "the proxy can be connected to");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tj::fuzz::MemoryFile file;
  file.write(tj::fuzz::text_of(data, size));
  check_program(file.path());
  check_person(file.path());
  return 0;
}
