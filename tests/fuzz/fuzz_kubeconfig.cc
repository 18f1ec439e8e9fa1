// A kubeconfig as a person brings it along.
#include "operator/kube/kube_config.h"
#include "tests/fuzz/fuzzed.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tj::fuzz::MemoryFile file;
  file.write(tj::fuzz::text_of(data, size));
  const auto config = tj::load_kube_config(
      {.kubeconfig = file.path(), .context = {}, .env = [](const char*) { return ""; }});
  if (config) TJ_CHECK(config->server.starts_with("https://"), "the server is always verified");
  return 0;
}
