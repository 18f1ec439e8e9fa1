#include "trainer/report/reporter.h"

#include <algorithm>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>

#include "contract/launch_env.h"
#include "contract/names.h"
#include "contract/utf8.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/process/lines.h"
#include "trainer/report/ledger_file.h"
#include "trainer/report/metrics_page.h"
#include "trainer/report/progress_server.h"
#include "trainer/report/tensorboard.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using nlohmann::ordered_json;

double seconds_before(const PhaseClock& clock) {
  const double counted = spending_of(clock.seen(), 0).total();
  return std::max(0.0, process_age_seconds() - counted);
}

std::string attempt_heading(const ProcessEnv& env) {
  return "attempt " + std::to_string(env.attempt) + ", rank " + std::to_string(env.rank) + " of " +
         std::to_string(env.world_size) + " on node " + env.node_name + ": begins";
}

/// Its values may be paths, which are any bytes; who reads TensorBoard's files takes UTF-8 only.
Setting valid(Setting row) {
  return {.name = std::move(row.name),
          .value = with_invalid_utf8_replaced(row.value),
          .origin = with_invalid_utf8_replaced(row.origin)};
}

/// The port to listen at; absent: none.
std::optional<int> port_of(const ReportOptions& options) {
  if (options.progress_port)
    return *options.progress_port > 0 ? options.progress_port : std::nullopt;
  if (!process_env(names::kEnvJobName)) return std::nullopt;
  return names::kProgressPortDefault;
}

}  // namespace

class Reporter::Impl {
 public:
  Impl(ReportOptions options, const ProcessEnv& env, const PhaseClock& clock)
      : options_(std::move(options)),
        env_(env),
        clock_(clock),
        out_(options_.out),
        ledger_(out_ / "ledger.json", clock, seconds_before(clock)),
        server_({.progress = [this] { return to_progress_document(state().progress); },
                 .metrics = [this] { return metrics_page(state()); }},
                [this] { tick(); }) {
    state_.progress.attempt = env.attempt;
    state_.progress.steps = options_.steps;
    state_.unit = options_.unit.name;
    open_log();
    if (!is_first()) return;
    open_port();
    server_.start();
  }

  bool is_first() const { return env_.rank == 0; }

  void begin(std::vector<Setting> table) {
    if (!is_first()) return;
    table.push_back(mfu_setting());
    table.push_back(log_setting_);
    table.push_back(port_setting_);
    table.push_back(open_tensorboard());
    for (auto& row : table) row = valid(std::move(row));
    say(render_settings(table));
    table_ = std::move(table);
    draws_bar_ = is_terminal();
    has_colour_ = process_env("NO_COLOR").value_or("").empty();  // no-color.org
  }

  void training_begins(std::int64_t step, const std::string& path) {
    if (!is_first()) return;
    {
      const std::scoped_lock lock(mutex_);
      state_.progress.step = step;
      if (step > 0) state_.progress.last_checkpoint = SavedStep{.step = step, .path = path};
    }
    ledger_.begin(env_.attempt, options_.resume, step);
    has_begun_ = true;
    if (tensorboard_)
      tensorboard_->begin(step + 1, table_, options_.hyperparameters, options_.unit);
    ordered_json event = {{"event", step > 0 ? "resume" : "begin"},
                          {"attempt", env_.attempt},
                          {"at_step", step},
                          {"unix_seconds", unix_seconds()}};
    if (!path.empty()) event["path"] = with_invalid_utf8_replaced(path);
    add_event(event);
  }

  void set_aside(const SetAside& aside) {
    if (!is_first()) return;
    add_event({{"event", "damaged"},
               {"attempt", env_.attempt},
               {"checkpoint", aside.damaged.name},
               {"cause", with_invalid_utf8_replaced(aside.damaged.cause)},
               {"set_aside_as", aside.as}});
  }

  Result<void> step(StepReport report) {
    if (!is_first()) return {};
    pace_.step_done(Pace::Clock::now());
    report.unit = options_.unit;
    const auto left = static_cast<double>(report.steps - report.step);
    if (const auto pace = pace_.seconds_per_step(); pace && left > 0)
      report.eta_seconds = *pace * left;
    if (options_.peak_tflops > 0) {
      report.mfu = units_per_second(report) * options_.flops_per_unit /
                   (options_.peak_tflops * 1e12 * env_.world_size);
    }
    note(report);
    if (tensorboard_) tensorboard_->step(report, ledger_.spending());
    show(report);
    return append_line(metrics(), step_json(report));
  }

  void evaluated(const EvalReport& report) {
    if (!is_first()) return;
    {
      const std::scoped_lock lock(mutex_);
      state_.eval_loss = report.loss;
    }
    if (tensorboard_) tensorboard_->evaluated(report);
    if (report.picture) keep_picture(report.step, *report.picture);
    say(eval_line(report));
    (void)append_line(metrics(), eval_json(report));  // the next step says why not
  }

  void reduction_checked(const ReductionReport& report) {
    if (!is_first()) return;
    if (tensorboard_) tensorboard_->reduction_checked(report);
    say(reduction_line(report));
    if (report.gave_up) say_error(given_up_line(report));
    (void)append_line(metrics(), reduction_json(report));  // the next step says why not
  }

  void save_begins(std::int64_t step) {
    if (is_first()) ledger_.mark(step);
  }

  void saved(const SaveReport& report) {
    {
      const std::scoped_lock lock(mutex_);
      state_.progress.last_checkpoint =
          SavedStep{.step = report.step, .path = report.path.string()};
    }
    say(save_line(report));
    (void)append_line(metrics(), save_json(report));  // the next step says why not
  }

  void interfered(const InterferenceReport& report) {
    if (!is_first()) return;
    say(interference_line(report));
    (void)append_line(metrics(), interference_json(report));
  }

  std::optional<SavedStep> last_checkpoint() const {
    const std::scoped_lock lock(mutex_);
    return state_.progress.last_checkpoint;
  }

  void watch(std::function<std::vector<StalledRank>()> stalled) {
    const std::scoped_lock lock(stalled_mutex_);
    stalled_ = std::move(stalled);
  }

  void end(const std::optional<Failure>& failure) {
    watch({});
    if (!is_first() || !has_begun_ || std::exchange(has_ended_, true)) return;
    server_.stop();  // the process may end at once: its thread must leave no file half done
    if (draws_bar_) draw_bar("");
    if (!failure) ledger_.finish();
    ledger_.write();
    const auto spending = ledger_.spending();
    say(ledger_line(spending));
    add_end(failure, spending);
    if (!tensorboard_) return;
    const bool is_good = !failure || failure->exit_code == exit_code::kInterrupted;
    tensorboard_->end(state().progress.step,
                      is_good ? SessionStatus::success : SessionStatus::failure);
  }

  void end_unsaid() {
    end(Failure{.exit_code = exit_code::kInternal, .reason = "Internal", .message = "unknown"});
  }

 private:
  /// What goes wrong with it is said, and costs the run nothing.
  void keep_picture(std::int64_t step, const Picture& picture) {
    const auto png = png_of(picture);
    if (!png)
      return say_error("no picture of step " + std::to_string(step) + ": " + describe(png.error()));
    if (tensorboard_) tensorboard_->picture(step, picture, *png);
    const auto path = out_ / "pictures" / (checkpoint_name(step) + ".png");
    std::error_code refused;
    fs::create_directories(path.parent_path(), refused);
    std::ofstream file(path, std::ios::binary);
    file.write(png->data(), static_cast<std::streamsize>(png->size()));
    if (!file.flush()) say_error(path.string() + ": can't be written");
  }

  fs::path metrics() const { return out_ / "metrics.jsonl"; }

  void open_log() {
    const std::string name = "rank-" + std::to_string(env_.rank) + ".log";
    log_setting_ = {"rank logs", "off", "flag"};
    if (options_.log_dir.empty()) return;
    const fs::path folder = options_.log_dir;
    log_setting_ = {"rank logs", (folder / "rank-N.log").string(), "computed: one for each rank"};
    const auto opened = log_lines_to(folder / name, attempt_heading(env_));
    if (opened) return;
    log_setting_ = {"rank logs", "none", "computed: " + describe(opened.error())};
    if (!is_first())
      say("rank " + std::to_string(env_.rank) + " keeps no log: " + describe(opened.error()));
  }

  void open_port() {
    const auto port = port_of(options_);
    port_setting_ = {"progress", "off", "computed: not in a job"};
    if (options_.progress_port) port_setting_.origin = "flag";
    if (!port) return;
    // Other machines ask in a pod only.
    const bool is_in_pod = process_env(names::kEnvPodIp).has_value();
    const auto listening = server_.listen(*port, is_in_pod);
    if (!listening) {
      port_setting_ = {"progress", "off", "computed: " + describe(listening.error())};
      say_error("no /progress and no /metrics: " + describe(listening.error()));
      return;
    }
    const std::string host = is_in_pod ? "" : "127.0.0.1";
    port_setting_ = {"progress", host + ":" + std::to_string(*port),
                     options_.progress_port ? "flag" : "default in a job"};
  }

  Setting mfu_setting() const {
    const std::string formula = "computed: " + options_.unit.short_name + "/s x " +
                                number_text(options_.flops_per_unit) + " FLOP (" +
                                options_.flops_formula + ")";
    if (options_.peak_tflops > 0)
      return {"mfu", "of " + number_text(options_.peak_tflops) + " TFLOP/s per rank", formula};
    return {"mfu", "unknown peak", formula + "; --peak-tflops says it"};
  }

  Setting open_tensorboard() {
    if (options_.tensorboard.empty()) return {"tensorboard", "off", "flag"};
    std::string host = env_.node_name;
    std::ranges::replace(host, '/', '_');
    auto opened = TensorBoard::create(options_.tensorboard, host);
    if (!opened) return {"tensorboard", "none", "computed: " + describe(opened.error())};
    const std::scoped_lock lock(tensorboard_mutex_);
    tensorboard_.emplace(std::move(*opened));
    return {"tensorboard", options_.tensorboard, "computed: event files"};
  }

  RunState state() const {
    const Seen seen = clock_.seen();
    RunState state;
    {
      const std::scoped_lock lock(mutex_);
      state = state_;
    }
    state.progress.phase = to_string(seen.phase);
    state.progress.heartbeat_age_seconds = seen.still_seconds;
    state.spending = ledger_.spending();
    const std::scoped_lock lock(stalled_mutex_);
    if (stalled_) state.progress.stalled = stalled_();
    return state;
  }

  void note(const StepReport& report) {
    const std::scoped_lock lock(mutex_);
    auto& progress = state_.progress;
    progress.step = report.step;
    progress.loss = report.loss;
    if (report.unit.name == "tokens") progress.tokens_per_second = units_per_second(report);
    state_.units_per_second = units_per_second(report);
    state_.metrics = report.metrics;
    progress.mfu = report.mfu;
    progress.eta_seconds = report.step == report.steps ? 0 : report.eta_seconds;
    state_.lr = report.lr;
    state_.gradient_norm = report.gradient_norm;
    state_.step_seconds = report.seconds;
    state_.exposed_seconds = report.exposed_seconds.value_or(0);
    state_.units += static_cast<double>(report.units);
  }

  /// Where there is a bar, each step is on it already.
  void show(const StepReport& report) {
    const bool is_first_or_last = report.step == 1 || report.step == report.steps;
    const bool is_due = report.step % options_.log_every == 0 || is_first_or_last;
    if (is_due && (!draws_bar_ || options_.log_every > 1 || is_first_or_last))
      say(step_line(report, options_.log_style));
    if (draws_bar_) draw_bar(progress_bar(report, terminal_columns(), has_colour_));
  }

  void add_event(const ordered_json& event) { (void)append_line(metrics(), event.dump()); }

  void add_end(const std::optional<Failure>& failure, const Spending& spending) {
    ordered_json event = {{"event", failure ? "failure" : "end"},
                          {"attempt", env_.attempt},
                          {"at_step", state().progress.step},
                          {"unix_seconds", unix_seconds()}};
    if (failure && failure->exit_code == exit_code::kInterrupted) event["event"] = "stop";
    if (failure) {
      event["exit_code"] = failure->exit_code;
      event["reason"] = failure->reason;
      event["message"] = with_invalid_utf8_replaced(failure->message);
    }
    add_event(event);
    ordered_json seconds;
    for (int kind = 0; kind < kSpentKinds; ++kind)
      seconds[to_string(static_cast<Spent>(kind))] = spending[static_cast<Spent>(kind)];
    add_event({{"event", "ledger"}, {"total_seconds", spending.total()}, {"spent", seconds}});
  }

  /// Each second, on the server's thread.
  void tick() {
    ledger_.write();
    const std::scoped_lock lock(tensorboard_mutex_);
    if (tensorboard_) (void)tensorboard_->flush();
  }

  const ReportOptions options_;
  const ProcessEnv& env_;
  const PhaseClock& clock_;
  const fs::path out_;
  std::vector<Setting> table_;
  Setting log_setting_;
  Setting port_setting_;
  Pace pace_;
  bool draws_bar_ = false;
  bool has_colour_ = false;
  bool has_begun_ = false;
  bool has_ended_ = false;
  mutable std::mutex mutex_;  // guards the one below
  RunState state_;
  mutable std::mutex stalled_mutex_;  // guards the one below, and that nobody asks after end()
  std::function<std::vector<StalledRank>()> stalled_;
  LedgerFile ledger_;
  std::mutex tensorboard_mutex_;  // guards that it is made, while the server's thread may look
  std::optional<TensorBoard> tensorboard_;
  ProgressServer server_;  // its thread uses all of the above: first to end
};

Reporter::Reporter(ReportOptions options, const ProcessEnv& env, const PhaseClock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), env, clock)) {}
Reporter::~Reporter() { impl_->end_unsaid(); }

void Reporter::begin(std::vector<Setting> table) { impl_->begin(std::move(table)); }
void Reporter::training_begins(std::int64_t step, const std::string& path) {
  impl_->training_begins(step, path);
}
void Reporter::set_aside(const SetAside& aside) { impl_->set_aside(aside); }
Result<void> Reporter::step(StepReport report) { return impl_->step(report); }
void Reporter::evaluated(const EvalReport& report) { impl_->evaluated(report); }
void Reporter::reduction_checked(const ReductionReport& report) {
  impl_->reduction_checked(report);
}
void Reporter::save_begins(std::int64_t step) { impl_->save_begins(step); }
void Reporter::saved(const SaveReport& report) { impl_->saved(report); }
void Reporter::interfered(const InterferenceReport& report) { impl_->interfered(report); }
std::optional<SavedStep> Reporter::last_checkpoint() const { return impl_->last_checkpoint(); }
void Reporter::watch(std::function<std::vector<StalledRank>()> stalled) {
  impl_->watch(std::move(stalled));
}
void Reporter::end(const std::optional<Failure>& failure) { impl_->end(failure); }

}  // namespace tj::trainer
