// The operator's command line.
#pragma once
#include <string>
#include <variant>

#include "contract/result.h"

namespace tj {

struct OperatorOptions {
  std::string ns;                       // empty: all namespaces
  bool watch_nodes = true;              // to notice dead ones
  std::string listen = "0.0.0.0:8080";  // metrics, and probes
  std::string probe_listen;             // a port of their own for probes; empty: none
  std::string log_level = "info";
  bool leader_elect = false;     // act only while holding the Lease
  std::string lease_ns;          // empty: our own namespace
  std::string operator_ns;       // where operators run; empty: our own namespace
  bool keep_file_pages = false;  // do not give back clean pages of programs and libraries
  std::string kubeconfig;        // empty: KUBECONFIG, the pod's account, ~/.kube/config
};

/// Text to print, and then to end well: --help, --version.
struct PrintAndExit {
  std::string text;
};

/// Fails with Code::invalid; the error names the option and its value.
Result<std::variant<OperatorOptions, PrintAndExit>> parse_options(int argc,
                                                                  const char* const* argv);

}  // namespace tj
