// Logs as they are written, until the job has ended: the pods of a job are watched, the log of each
// container is opened once it has started, and those of the next attempt after a restart. Says for
// whom it waits, and why, in the words of the job's status.
#pragma once
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/cluster/session.h"
#include "cli/logs/log_printer.h"
#include "cli/logs/log_targets.h"
#include "cli/logs/logs_options.h"
#include "cli/logs/pod_log.h"
#include "operator/loop/watch_driver.h"

namespace tj {

class FollowLogs {
 public:
  static constexpr std::chrono::milliseconds kAskAboutJob{2'000};
  /// When a log has ended, the job may have, too.
  static constexpr std::chrono::milliseconds kAskAfterEnd{200};
  /// What is gathered is written at least so often.
  static constexpr std::chrono::milliseconds kWriteWait{50};

  FollowLogs(Session& session, const LogsOptions& options, LogPrinter& printer);

  /// Returns when nothing more can come; false: of some not all could be read, which has been said.
  bool run();

 private:
  using Targets = std::map<std::string, LogTarget>;  // by uid; of no interest: it never starts
  void on_pods(const WatchDelta& delta);
  void take_pod(const nlohmann::json& pod, Targets& into);
  void look_soon();
  void look();
  void open(const LogTarget& target);
  void take(int rank, LogTime time, std::string_view text);
  void write_soon();
  void ask_about_job();
  void on_job(const Result<std::string>& answer);
  void say_job(const nlohmann::json& object);
  void end_if_done();
  bool may_have_more() const;

  Session& session_;
  LogsOptions options_;
  LogPrinter& printer_;
  Alarm alarm_;
  WatchDriver pods_watch_;
  Targets pods_;
  Targets listed_;                                       // of a list that has begun
  std::map<std::string, std::unique_ptr<PodLog>> logs_;  // by the target's identity
  std::map<std::string, std::string> pod_of_log_;        // uid by identity
  std::map<std::string, std::string> problems_;          // the last that was said, by pod
  std::string last_said_;
  bool job_has_ended_ = false;  // or is no more, or is past the attempt that was asked for
  bool has_listed_since_ = false;
  bool is_look_due_ = false;
  bool is_write_due_ = false;
  bool is_done_ = false;
  bool is_all_ = true;
};

}  // namespace tj
