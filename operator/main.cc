// trainingjob-operator: reads its options, connects, and lets one thread look after all jobs until
// it is asked to stop. An API server that can't be reached is waited for; a configuration that
// can't be right ends the program at once, with the cause as its last line.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdio>
#include <random>

#include "contract/launch_env.h"
#include "contract/outcome.h"
#include "operator/kube/kube_config.h"
#include "operator/kube/rest_kube_api.h"
#include "operator/loop/controller.h"
#include "operator/loop/health_server.h"
#include "operator/loop/http_progress_source.h"
#include "operator/loop/log_text.h"
#include "operator/loop/metrics.h"
#include "operator/loop/options.h"
#include "operator/loop/resident_memory.h"

namespace tj {
namespace {

using boost::asio::io_context;

// Answers in flight are waited for; what comes later, the next operator finds out by itself.
constexpr std::chrono::seconds kStopMax{5};
constexpr std::chrono::milliseconds kStopCheck{20};
// A list, and a burst of jobs, need many times what is kept of them.
constexpr std::chrono::seconds kTrimInterval{10};

int fail(const Error& error, int code) {
  std::fprintf(stderr, "trainingjob-operator: %s\n", describe(error).c_str());
  return code;
}

void set_up_log(const std::string& level) {
  auto logger = spdlog::stderr_logger_mt("operator");
  logger->set_pattern("time=%Y-%m-%dT%H:%M:%S.%eZ level=%l %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

Result<KubeConfig> find_server(const OperatorOptions& options) {
  KubeConfigSources sources{.kubeconfig = options.kubeconfig,
                            .context = "",
                            .env = [](const char* name) { return process_env(name).value_or(""); }};
  return load_kube_config(sources);
}

RestOptions counted(Metrics& metrics) {
  RestOptions options;
  options.observe = [&metrics](const RequestObservation& seen) {
    metrics.count_request(seen.verb, seen.resource, seen.code);
  };
  return options;
}

TimePoint wall_clock() {
  return std::chrono::time_point_cast<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

/// A process that starts anew is somebody else: only its own answers tell it that it leads.
std::string own_identity() {
  std::random_device random;
  char digits[20];
  std::snprintf(digits, sizeof digits, "_%08x%08x", random(), random());
  boost::system::error_code nameless;
  return boost::asio::ip::host_name(nameless) + digits;
}

/// What the option says, else the namespace that we run in.
std::string own_ns(const std::string& option, const KubeConfig& config) {
  return option.empty() ? config.ns : option;
}

/// Operators of different namespaces have nothing to agree on.
std::optional<LeaseTarget> lease_of(const OperatorOptions& options, const KubeConfig& config) {
  if (!options.leader_elect) return std::nullopt;
  const std::string suffix = options.ns.empty() ? "" : "." + options.ns;
  return LeaseTarget{.ns = own_ns(options.lease_ns, config),
                     .name = "trainingjob-operator" + suffix,
                     .identity = own_identity()};
}

/// SIGTERM and SIGINT end the loop in order; a second one ends it at once.
class Stop {
 public:
  Stop(io_context& loop, Controller& controller)
      : loop_(loop), controller_(controller), signals_(loop, SIGINT, SIGTERM), check_(loop) {
    wait_for_signal();
  }

 private:
  void wait_for_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
      if (error) return;
      spdlog::info("msg=stopping signal={}", signal);
      if (std::exchange(begun_, true)) return loop_.stop();
      deadline_ = std::chrono::steady_clock::now() + kStopMax;
      controller_.stop();
      check();
      wait_for_signal();
    });
  }
  void check() {
    const bool is_late = std::chrono::steady_clock::now() >= deadline_;
    if (controller_.requests_in_flight() == 0 || is_late) return loop_.stop();
    check_.expires_after(kStopCheck);
    check_.async_wait([this](const boost::system::error_code& error) {
      if (!error) check();
    });
  }

  io_context& loop_;
  Controller& controller_;
  boost::asio::signal_set signals_;
  boost::asio::steady_timer check_;
  std::chrono::steady_clock::time_point deadline_;
  bool begun_ = false;
};

/// Gives back what the start and what bursts have needed.
class MemoryTrim {
 public:
  MemoryTrim(io_context& loop, bool keeps_file_pages)
      : timer_(loop), keeps_file_pages_(keeps_file_pages) {
    wait();
  }

 private:
  void wait() {
    timer_.expires_after(kTrimInterval);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      trim_heap();
      if (!keeps_file_pages_) drop_clean_file_pages();
      wait();
    });
  }

  boost::asio::steady_timer timer_;
  bool keeps_file_pages_;
};

using Windows = std::vector<std::unique_ptr<HealthServer>>;

/// For Prometheus and probes, and one for probes alone where the options say so.
Result<Windows> open_windows(io_context& loop, const OperatorOptions& options,
                             const Controller& controller, Metrics& metrics) {
  const HealthPages for_probes{
      .not_ready_reason = [&controller] { return controller.not_ready_reason(); }, .metrics = {}};
  HealthPages for_all = for_probes;
  for_all.metrics = [&metrics] { return metrics.text(); };
  std::vector<std::pair<std::string, HealthPages>> wanted{{options.listen, for_all}};
  if (!options.probe_listen.empty()) wanted.emplace_back(options.probe_listen, for_probes);
  Windows windows;
  for (const auto& [address, pages] : wanted) {
    auto window = HealthServer::listen(loop, address, pages);
    if (!window) return window.error();
    windows.push_back(*std::move(window));
  }
  return windows;
}

int run(const OperatorOptions& options) {
  set_up_heap();
  set_up_log(options.log_level);
  const auto config = find_server(options);
  if (!config) return fail(config.error(), exit_code::kBadConfig);

  io_context loop{1};
  const auto post = [&loop](std::function<void()> work) {
    boost::asio::post(loop, std::move(work));
  };
  Metrics metrics;
  RestKubeApi api(*config, post, counted(metrics));
  HttpProgressSource progress(loop);
  std::optional<Error> lease_lost;
  Controller controller(loop, api, metrics,
                        {.ns = options.ns,
                         .watch_nodes = options.watch_nodes,
                         .now = wall_clock,
                         .progress = &progress,
                         .operator_ns = own_ns(options.operator_ns, *config),
                         .lease = lease_of(options, *config),
                         .on_lease_lost = [&](const std::string& reason) {
                           lease_lost = Error{Code::conflict, reason, "", {}};
                           loop.stop();
                         }});
  const auto windows = open_windows(loop, options, controller, metrics);
  if (!windows) return fail(windows.error(), exit_code::kBadConfig);
  Stop stop(loop, controller);
  const MemoryTrim memory_trim(loop, options.keep_file_pages);

  spdlog::info("msg=starting version={} server={} config={} namespace={} listen={}", TJ_VERSION,
               config->server, log_value(config->source), options.ns.empty() ? "*" : options.ns,
               options.listen);
  controller.start();
  loop.run();
  if (lease_lost) return fail(*lease_lost, exit_code::kInterrupted);
  spdlog::info("msg=stopped");
  return exit_code::kDone;
}

}  // namespace
}  // namespace tj

int main(int argc, char** argv) {
  const auto options = tj::parse_options(argc, argv);
  if (!options) return tj::fail(options.error(), tj::exit_code::kUsage);
  if (const auto* print = std::get_if<tj::PrintAndExit>(&*options)) {
    std::fputs(print->text.c_str(), stdout);
    return tj::exit_code::kDone;
  }
  try {
    return tj::run(std::get<tj::OperatorOptions>(*options));
  } catch (const std::exception& bug) {
    return tj::fail({tj::Code::internal, bug.what(), "bug", {}}, tj::exit_code::kInternal);
  }
}
