#include "operator/loop/options.h"

#include <CLI/CLI.hpp>

namespace tj {

Result<std::variant<OperatorOptions, PrintAndExit>> parse_options(int argc,
                                                                  const char* const* argv) {
  OperatorOptions options;
  CLI::App app{"Runs TrainingJobs: creates their ranked workers and says how they fare.",
               "trainingjob-operator"};
  app.add_option("--namespace", options.ns, "look after this namespace only (default: all)")
      ->type_name("NAME");
  app.add_option("--watch-nodes", options.watch_nodes,
                 "notice dead nodes while jobs run; needs a permission on the whole cluster")
      ->type_name("true|false")
      ->capture_default_str();
  app.add_option("--listen", options.listen, "serve /healthz, /readyz and /metrics here")
      ->type_name("ADDR:PORT")
      ->capture_default_str();
  app.add_option("--probe-listen", options.probe_listen,
                 "serve /healthz and /readyz here too, so that nobody who reads metrics is in the "
                 "way of a probe")
      ->type_name("ADDR:PORT");
  app.add_option("--log-level", options.log_level, "how much is logged")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.add_flag("--leader-elect", options.leader_elect,
               "act only while holding a Lease, so that several operators may run");
  app.add_option("--lease-namespace", options.lease_ns,
                 "where that Lease is (default: the pod's namespace, or the kubeconfig context's)")
      ->type_name("NAME");
  app.add_option("--operator-namespace", options.operator_ns,
                 "from where jobs' NetworkPolicies let operators in (default: the pod's namespace, "
                 "or the kubeconfig context's)")
      ->type_name("NAME");
  app.add_option("--kubeconfig", options.kubeconfig,
                 "how to reach the API server (default: KUBECONFIG, the pod's service account, "
                 "~/.kube/config)")
      ->type_name("FILE");
  app.add_flag("--keep-file-pages", options.keep_file_pages,
               "keep pages of the program's files resident that are not in use; for measuring");
  app.set_version_flag("--version", "trainingjob-operator " TJ_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {PrintAndExit{app.help()}};
  } catch (const CLI::CallForVersion& version) {
    return {PrintAndExit{std::string(version.what()) + "\n"}};
  } catch (const CLI::ParseError& error) {
    return Error{Code::invalid, error.what(), "", {}};
  }
  return {options};
}

}  // namespace tj
