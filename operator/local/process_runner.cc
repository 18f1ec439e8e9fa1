#include "operator/local/process_runner.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "contract/names.h"
#include "contract/outcome.h"
#include "contract/utf8.h"
#include "operator/api/json.h"
#include "operator/api/pod_json.h"
#include "operator/api/read.h"
#include "operator/local/free_port.h"
#include "operator/local/pod_command.h"
#include "operator/local/volume_folder.h"

namespace tj {
namespace {

namespace fs = std::filesystem;
using namespace read;
using Json = nlohmann::json;

constexpr std::size_t kLogTailBytesMax = 2048;  // kubelet's bounds of FallbackToLogsOnError
constexpr std::size_t kLogTailLinesMax = 80;
constexpr std::size_t kUtf8BytesMax = 4;
constexpr int kNotFound = 127;  // as a shell says it
constexpr int kNotExecutable = 126;
constexpr int kNotStarted = 128;  // containerd's StartError

std::string label(const Json& pod, const char* name) {
  const auto labels = labels_of(pod);
  const auto found = labels.find(name);
  return found == labels.end() ? "" : found->second;
}

ContainerRun not_yet_run(const Json& container) {
  return {.name = string_at(container, "name"), .image = string_at(container, "image")};
}

Error not_started(std::string message) {
  return Error{
      .code = Code::invalid, .message = std::move(message), .subject = "", .retry_after = {}};
}

/// The last bytes of a file that may not be there, as text: a program may write any bytes.
std::string file_tail(const fs::path& path, std::size_t bytes_max) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::size_t>(file.tellg());
  const std::size_t count = std::min(size, bytes_max + kUtf8BytesMax);
  file.seekg(static_cast<std::streamoff>(size - count));
  std::string bytes(count, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  // A character that the begin cuts makes no more than kUtf8BytesMax wrong ones, and is cut off.
  const std::string text = with_invalid_utf8_replaced(bytes);
  return std::string(utf8_suffix(text, bytes_max));
}

std::string last_lines(const std::string& text, std::size_t lines_max) {
  std::size_t lines = 0;
  for (std::size_t at = text.size(); at > 0; --at) {
    const bool line_begins_here = text[at - 1] == '\n' && at < text.size();
    if (line_begins_here && ++lines == lines_max) return text.substr(at);
  }
  return text;
}

std::string start_message(int start_errno, const ChildCommand& command) {
  const std::string name = "\"" + command.argv.front() + "\"";
  if (start_errno != ENOENT) return "cannot start " + name + ": " + std::strerror(start_errno);
  std::error_code ignored;
  if (fs::exists(fs::path(command.working_folder) / command.program, ignored)) {
    return "cannot start " + name +
           ": the interpreter in its first line (#!) is not on this machine";
  }
  return "command not found: " + name + " (working folder " + command.working_folder + ")";
}

}  // namespace

struct ProcessRunner::Run {
  Run(boost::asio::io_context& loop, Json the_pod)
      : pod(std::move(the_pod)), key(key_of(pod)), grace_timer(loop) {}
  Json pod;
  ObjectKey key;
  std::string uid;
  PodName name;
  PodRunState state;
  fs::path termination_log;
  fs::path log_file;
  std::ofstream log;
  ChildCommand command;
  std::unique_ptr<ChildProcess> child;
  boost::asio::steady_timer grace_timer;
  bool stopping = false;
  std::optional<std::chrono::seconds> stop_grace;

  std::size_t init_count() const { return state.init_containers.size(); }
  /// The container that runs or is to start next; the main one after the last init container.
  std::size_t current = 0;
  ContainerRun& current_state() {
    return current < init_count() ? state.init_containers[current] : state.main;
  }
  const Json& current_container() const {
    if (current >= init_count()) return main_container(pod);
    return array_at(object_at(pod, "spec"), "initContainers")[current];
  }
};

ProcessRunner::ProcessRunner(boost::asio::io_context& loop, MemoryApi& api, RunnerOptions options)
    : loop_(loop), api_(api), options_(std::move(options)) {
  pods_ = api_.subscribe(Resource::pods, [this](const ObjectChange& change) { on_pod(change); });
}

ProcessRunner::~ProcessRunner() = default;

void ProcessRunner::kill_all() {
  for (const auto& [uid, run] : runs_) {
    run->stopping = true;
    if (run->child) run->child->kill();
  }
}

std::vector<PodReport> ProcessRunner::reports() const {
  std::vector<PodReport> all;
  for (const auto& [name, report] : reports_) all.push_back(report);
  std::stable_sort(all.begin(), all.end(), [](const PodReport& a, const PodReport& b) {
    return a.pod.worker_index < b.pod.worker_index;
  });
  return all;
}

void ProcessRunner::on_pod(const ObjectChange& change) {
  const Json& meta = object_at(*change.object, "metadata");
  const std::string uid = string_at(meta, "uid");
  const auto found = runs_.find(uid);
  if (change.type == ChangeType::added) {
    if (found == runs_.end()) accept(*change.object);
    return;
  }
  if (found == runs_.end()) return;
  const RunPtr run = found->second;
  if (change.type == ChangeType::deleted) {  // by force: nobody waits for it any more
    run->stopping = true;
    if (run->child) run->child->kill();
  } else if (meta.contains("deletionTimestamp")) {
    stop(run, std::chrono::seconds{number_at<long long>(meta, "deletionGracePeriodSeconds", 30)});
  }
}

/// An emptyDir is empty when its pod begins. What an earlier run of that pod left is kept once, as
/// its log is.
void ProcessRunner::set_volumes_aside(const std::string& pod_name) {
  const fs::path volumes = options_.run_folder / "volumes" / pod_name;
  const fs::path previous = volumes.string() + ".previous";
  std::error_code failure;
  if (!fs::exists(volumes, failure)) return;
  fs::remove_all(previous, failure);
  fs::rename(volumes, previous, failure);
}

void ProcessRunner::accept(const Json& added) {
  const auto bound = api_.objects().bind_pod(key_of(added), options_.node_name);
  if (!bound || bound->at("metadata").at("uid") != added.at("metadata").at("uid"))
    return;  // gone since
  const auto run = std::make_shared<Run>(loop_, *bound);
  run->uid = bound->at("metadata").at("uid").get<std::string>();
  const auto index = parse_int("", label(*bound, names::kLabelWorkerIndex), 0, 1'000'000);
  run->name = {run->key.name, index ? *index : -1};
  run->state.pod_ip = "127.0.0.1";
  run->state.accepted_at = options_.now();
  const Json& spec = object_at(*bound, "spec");
  for (const Json& container : array_at(spec, "initContainers")) {
    run->state.init_containers.push_back(not_yet_run(container));
  }
  const Json& main = main_container(*bound);
  run->state.main = not_yet_run(main);
  for (const Json& container : array_at(spec, "containers")) {
    if (&container == &main) continue;
    options_.on_note(run->name, "container \"" + string_at(container, "name") +
                                    "\" is not run: locally a worker is its first container");
  }
  runs_[run->uid] = run;
  reports_[run->name.name] = {.pod = run->name, .log_file = {}};
  write_status(*run);
  set_volumes_aside(run->key.name);
  start_next(run);
}

void ProcessRunner::start_next(const RunPtr& run) {
  ContainerRun& state = run->current_state();
  const auto started = start_container(run, run->current_container(), state);
  if (!started) return fail_to_start(run, started.error());
  state.started_at = options_.now();
  PodReport& report = reports_[run->name.name];
  report.log_file = run->log_file;
  if (!report.started_at) report.started_at = state.started_at;
  report.phase = phase_of(run->state);
  write_status(*run);
  options_.on_change();
}

Result<void> ProcessRunner::start_container(const RunPtr& run, const Json& container,
                                            ContainerRun& state) {
  auto spec = prepare(*run, container);
  if (!spec) return spec.error();
  const bool is_main = &state == &run->state.main;
  if (auto opened = open_log(*run, state.name, is_main); !opened) return opened;
  std::error_code ignored;
  const bool has_folder =
      !spec->working_folder.empty() && fs::is_directory(spec->working_folder, ignored);
  std::string path;
  for (const EnvVar& variable : spec->env) {
    if (variable.name == "PATH") path = variable.value;
  }
  run->command = {
      .program = find_program(spec->argv.front(), path),
      .argv = spec->argv,
      .env = spec->env,
      .working_folder = has_folder ? spec->working_folder : options_.manifest_folder.string()};
  if (run->command.program.empty()) {
    return Error{
        .code = Code::not_found,
        .message = "command not found: \"" + spec->argv.front() + "\" is in no folder of PATH",
        .subject = "",
        .retry_after = {}};
  }
  // The handlers must not keep the run alive: the run owns the child.
  const std::weak_ptr<Run> weak = run;
  ChildHandlers handlers{
      .on_output =
          [weak](std::string_view bytes) {
            if (const auto self = weak.lock())
              self->log.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush();
          },
      .on_line = [this, name = run->name](std::string_view line) { options_.on_line(name, line); },
      .on_end =
          [this, weak](const ChildEnd& end) {
            if (const auto self = weak.lock()) container_ended(self, end);
          }};
  auto child = ChildProcess::start(loop_, run->command, std::move(handlers));
  if (!child) return child.error();
  run->child = *std::move(child);
  return {};
}

Result<ProcessSpec> ProcessRunner::prepare(Run& run, const Json& container) {
  const auto port = master_port(run.pod);
  if (!port) return port.error();
  run.termination_log = options_.run_folder / "last-words" / run.key.name;
  std::error_code failure;
  fs::create_directories(run.termination_log.parent_path(), failure);
  fs::remove(run.termination_log, failure);
  const LocalFacts facts{.node_name = options_.node_name,
                         .pod_ip = run.state.pod_ip,
                         .master_port = *port,
                         .volumes_folder = (options_.run_folder / "volumes").string(),
                         .manifest_folder = options_.manifest_folder.string(),
                         .termination_log = run.termination_log.string(),
                         .path_folders = options_.path_folders,
                         .machine_env = options_.machine_env};
  auto spec = local_process(run.pod, container, facts);
  if (!spec) return spec;
  for (const std::string& folder : spec->folders_to_make) {
    const auto made = make_volume_folder(folder, facts.volumes_folder);
    if (!made) return not_started(describe(made.error()));
  }
  return spec;
}

/// One file per container; what an earlier run left under that name is kept as
/// `<name>.previous.log`.
Result<void> ProcessRunner::open_log(Run& run, const std::string& container_name, bool is_main) {
  const std::string attempt = label(run.pod, names::kLabelAttempt);
  std::string stem = run.key.name;
  if (!attempt.empty() && attempt != "0") stem += ".attempt-" + attempt;
  if (!is_main) stem += "." + container_name;
  run.log_file = options_.run_folder / (stem + ".log");
  std::error_code failure;
  fs::create_directories(options_.run_folder, failure);
  if (fs::exists(run.log_file, failure)) {
    fs::rename(run.log_file, options_.run_folder / (stem + ".previous.log"), failure);
  }
  run.log = std::ofstream(run.log_file, std::ios::binary | std::ios::trunc);
  if (!run.log)
    return not_started("cannot write the log " + run.log_file.string() + ": " +
                       std::strerror(errno));
  return {};
}

/// Ports and attempts are one: a new attempt must not meet the old one's master.
Result<int> ProcessRunner::master_port(const Json& pod) {
  const Json& meta = object_at(pod, "metadata");
  std::string owner = string_at(meta, "uid");
  for (const Json& reference : array_at(meta, "ownerReferences"))
    owner = string_at(reference, "uid");
  const std::string key = owner + "/" + label(pod, names::kLabelAttempt);
  if (const auto found = master_ports_.find(key); found != master_ports_.end())
    return found->second;
  auto port = choose_free_port();
  if (port) master_ports_[key] = *port;
  return port;
}

void ProcessRunner::container_ended(const RunPtr& run, const ChildEnd& end) {
  ContainerRun& state = run->current_state();
  run->child.reset();
  run->log.close();
  if (end.start_errno != 0) {
    state.started_at.reset();
    return fail_to_start(
        run, Error{.code = end.start_errno == ENOENT ? Code::not_found : Code::forbidden,
                   .message = start_message(end.start_errno, run->command),
                   .subject = "",
                   .retry_after = {}});
  }
  ContainerExit exit{.exit_code = end.exit_code,
                     .reason = end.exit_code == 0 ? "Completed" : "Error",
                     .message = file_tail(run->termination_log, kTerminationMessageBytesMax),
                     .finished_at = options_.now()};
  const bool may_quote_log =
      string_at(run->current_container(), "terminationMessagePolicy") == "FallbackToLogsOnError";
  if (exit.message.empty() && exit.exit_code != 0 && may_quote_log) {
    exit.message = last_lines(file_tail(run->log_file, kLogTailBytesMax), kLogTailLinesMax);
  }
  state.exit = std::move(exit);
  const bool next_may_start =
      run->current < run->init_count() && end.exit_code == 0 && !run->stopping;
  if (!next_may_start) return finish(run);
  ++run->current;
  start_next(run);
}

void ProcessRunner::fail_to_start(const RunPtr& run, const Error& error) {
  int code = kNotStarted;
  if (error.code == Code::not_found) code = kNotFound;
  if (error.code == Code::forbidden) code = kNotExecutable;
  run->current_state().exit = ContainerExit{.exit_code = code,
                                            .reason = "StartError",
                                            .message = with_invalid_utf8_replaced(describe(error)),
                                            .finished_at = options_.now()};
  options_.on_note(run->name, describe(error));
  finish(run);
}

void ProcessRunner::finish(const RunPtr& run) {
  run->grace_timer.cancel();
  PodReport& report = reports_[run->name.name];
  report.phase = phase_of(run->state);
  report.exit = run->current_state().exit;
  report.stopped = run->stopping;
  if (run->stopping && report.phase == PodPhase::pending) report.phase = PodPhase::failed;
  write_status(*run);
  if (run->stopping) {
    // Gone already when the deletion was by force.
    [[maybe_unused]] const auto removed = api_.objects().finish_delete(run->key, run->uid);
  }
  runs_.erase(run->uid);
  options_.on_change();
}

/// Each change of a pod that is being deleted comes here; only one that shortens the grace counts.
void ProcessRunner::stop(const RunPtr& run, std::chrono::seconds grace) {
  grace = options_.grace.value_or(grace);
  const bool is_news = !run->stop_grace || grace < *run->stop_grace;
  if (!run->child || !is_news) return;
  if (!run->stopping) run->child->terminate();
  run->stopping = true;
  run->stop_grace = grace;
  run->grace_timer.expires_after(grace);
  run->grace_timer.async_wait([this, grace, weak = std::weak_ptr<Run>(run)](auto failure) {
    const auto self = weak.lock();
    if (failure || !self || !self->child) return;
    options_.on_note(self->name, "did not end within " + std::to_string(grace.count()) +
                                     " s of SIGTERM: killed");
    self->child->kill();
  });
}

void ProcessRunner::write_status(const Run& run) {
  const auto stored = api_.objects().get(Resource::pods, run.key);
  if (!stored || stored->at("metadata").at("uid") != run.uid)
    return;  // gone, or another of that name
  const Json patch = pod_status_patch(run.state, object_at(*stored, "status"), options_.now());
  [[maybe_unused]] const auto written = api_.objects().patch_status(Resource::pods, run.key, patch);
}

}  // namespace tj
