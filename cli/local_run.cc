#include "cli/local_run.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <random>
#include <system_error>

#include "cli/exit.h"
#include "cli/line_printer.h"
#include "cli/local/run_keeper.h"
#include "cli/run_report.h"
#include "cli/trainer_program.h"
#include "operator/api/json.h"
#include "operator/api/validate.h"
#include "operator/local/memory_api.h"
#include "operator/local/process_runner.h"
#include "operator/loop/controller.h"
#include "operator/loop/metrics.h"

extern char** environ;

namespace tj {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;

TimePoint wall_clock() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

std::vector<EnvVar> machine_env() {
  std::vector<EnvVar> env;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos)
      env.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return env;
}

std::string host_name() {
  char name[256] = "localhost";
  gethostname(name, sizeof name - 1);
  return name;
}

/// Random: the uid is part of each rendezvous key, and two runs on one machine must never meet.
std::string random_uid_prefix() {
  std::random_device random;
  char text[25];
  std::snprintf(text, sizeof text, "%08x-%04x-4%03x-a%03x-", random(), random() & 0xffffU,
                random() & 0xfffU, random() & 0xfffU);
  return text;
}

class LocalRun {
 public:
  LocalRun(const JobManifest& manifest, const LocalRunOptions& options)
      : manifest_(manifest),
        folder_(run_folder(manifest, options)),
        printer_(STDOUT_FILENO, wants_colour(STDOUT_FILENO, options.no_colour)),
        signals_(loop_, SIGINT, SIGTERM, SIGHUP),
        api_([this](std::function<void()> work) { asio::post(loop_, std::move(work)); }, wall_clock,
             store_options()),
        runner_(loop_, api_, runner_options(options)),
        controller_(loop_, api_, metrics_, {.ns = "", .now = wall_clock}) {}

  int run() {
    for (const std::string& other : manifest_.ignored) printer_.line("ignored: " + other);
    jobs_ = api_.subscribe(Resource::training_jobs,
                           [this](const ObjectChange& change) { on_job(change); });
    const auto stored = api_.objects().create(Resource::training_jobs, "", manifest_.job);
    if (!stored) {
      std::fprintf(stderr, "tj: %s\n", describe(stored.error()).c_str());
      return tj_exit::kWrongInput;
    }
    key_ = key_of(*stored);
    keep_objects();
    wait_for_signal();
    controller_.start();
    loop_.run();
    return report();
  }

 private:
  ObjectStoreOptions store_options() {
    return {.uid_prefix = random_uid_prefix(), .validate_job = [](const nlohmann::json& job) {
              return describe(validate_manifest(job));
            }};
  }

  static fs::path run_folder(const JobManifest& manifest, const LocalRunOptions& options) {
    const fs::path out = options.out.empty() ? fs::path("out") / manifest.name : options.out;
    return fs::absolute(out).lexically_normal();
  }

  /// For tj list and the others. A run whose folder another one has writes no objects beside it.
  void keep_objects() {
    auto registration =
        RunRegistration::make({.job = manifest_.name, .ns = key_.ns, .folder = folder_});
    const bool is_taken = !registration && registration.error().code == Code::conflict;
    if (!is_taken) keeper_.emplace(loop_, api_, folder_);
    if (registration) {
      registration_.emplace(*std::move(registration));
    } else {
      printer_.line("tj: other commands do not see this run: " + describe(registration.error()));
    }
  }

  RunnerOptions runner_options(const LocalRunOptions& options) {
    return {
        .run_folder = folder_,
        .manifest_folder = manifest_.folder,
        .node_name = host_name(),
        .path_folders = program_folders(),
        .machine_env = machine_env(),
        .grace = options.grace,
        .now = wall_clock,
        .on_line = [this](const PodName& pod,
                          std::string_view line) { printer_.worker_line(pod.worker_index, line); },
        .on_note = [this](const PodName& pod,
                          const std::string& note) { printer_.line(pod.name + ": " + note); },
        .on_change = [this] { end_if_done(); }};
  }

  void on_job(const ObjectChange& change) {
    if (change.type == ChangeType::deleted) return end_if_done();
    const auto job = job_from_json(*change.object);
    if (!job) return;
    job_ = *job;
    const std::string line = status_line(job_);
    // How the job ended is the last line of all; it comes early only if there is still somebody to
    // wait for.
    const bool is_news = change.object->contains("status") && line != last_line_ &&
                         !(is_terminal(job_.status.phase) && runner_.idle());
    if (is_news) {
      printer_.line(line);
      last_line_ = line;
    }
    end_if_done();
  }

  void wait_for_signal() {
    signals_.async_wait([this](auto failure, int number) {
      if (failure) return;
      on_signal(number);
      wait_for_signal();
    });
  }

  /// The first one deletes the job: garbage collection deletes its pods, and their processes get
  /// SIGTERM and a grace.
  void on_signal(int number) {
    if (signal_) {
      printer_.line("tj: killing the workers");
      runner_.kill_all();
      return;
    }
    signal_ = number;
    printer_.line("tj: stopping job " + manifest_.name + "; once more kills its workers");
    controller_.stop();
    if (keeper_) keeper_->keep_deleted();
    [[maybe_unused]] const auto removed = api_.objects().remove(Resource::training_jobs, key_);
    end_if_done();
  }

  /// Posted: what is under way (a creation, the garbage collection) is posted already and comes
  /// first.
  void end_if_done() {
    asio::post(loop_, [this] { asio::post(loop_, [this] { end_now_if_done(); }); });
  }

  void end_now_if_done() {
    const bool decided = signal_ || is_terminal(job_.status.phase);
    if (!decided || !runner_.idle()) return;
    controller_.stop();
    // Their answers are posted already: a few turns of the loop, no waiting.
    if (controller_.requests_in_flight() > 0) return end_if_done();
    loop_.stop();
  }

  int report() {
    if (keeper_) {
      if (const auto kept = keeper_->finish(); !kept)
        printer_.line("tj: other commands do not see all of this run: " + describe(kept.error()));
    }
    printer_.line("");
    printer_.line(worker_table(runner_.reports(), fs::current_path()));
    const bool finished = is_terminal(job_.status.phase);
    if (!finished) {
      printer_.line("job " + manifest_.name + ": Interrupted (" +
                    (signal_ == SIGINT ? "Ctrl-C" : "asked to end") + ")");
      return signal_ == SIGINT ? tj_exit::kInterrupted : tj_exit::kTerminated;
    }
    printer_.line(status_line(job_));
    return job_.status.phase == Phase::succeeded ? tj_exit::kSucceeded : tj_exit::kFailed;
  }

  const JobManifest& manifest_;
  fs::path folder_;
  LinePrinter printer_;
  asio::io_context loop_;
  asio::signal_set signals_;
  Metrics metrics_;
  MemoryApi api_;
  ProcessRunner runner_;
  Controller controller_;
  std::optional<RunRegistration> registration_;
  std::optional<RunKeeper> keeper_;
  std::unique_ptr<WatchStream> jobs_;
  ObjectKey key_;
  TrainingJob job_;
  std::string last_line_;
  std::optional<int> signal_;
};

}  // namespace

int run_locally(const JobManifest& manifest, const LocalRunOptions& options) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("operator"));
  spdlog::set_level(spdlog::level::warn);  // what it decides is seen in the status lines
  LocalRun run(manifest, options);
  return run.run();
}

}  // namespace tj
