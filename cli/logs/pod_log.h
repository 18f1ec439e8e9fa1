// Reads the log of one container through the KubeApi seam, to its end, whatever happens to the
// connection: what breaks is opened again where it was (resume_point.h). A log that is followed has
// ended once its container is known to have ended and a stream that was opened after that has
// ended, too: an orderly end alone may be a proxy's, or a kubelet's that is restarted.
//
// A log is asked for by the pod's name, and after a restart of the gang another pod has that name:
// what a stream says is held back until the pod is known to be still the one that was meant.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/logs/resume_point.h"
#include "operator/kube/kube_api.h"
#include "operator/loop/alarm.h"

namespace tj {

struct PodLogRequest {
  std::string ns;
  std::string pod;
  std::string uid;  // empty: whichever has the name
  std::string container;
  bool follow = false;
  bool previous = false;
  std::optional<LogTime> since;
  std::optional<std::int64_t> tail_lines;
  bool container_has_ended = false;
};

struct PodLogEvents {
  std::function<void(LogTime time, std::string_view text)> on_line;
  /// Once: nothing more will come, and why if it is not all.
  std::function<void(Result<void> end)> on_end;
  /// It can't be read now, and is tried again.
  std::function<void(const Error& problem)> on_problem;
};

class PodLog {
 public:
  static constexpr std::chrono::milliseconds kRetryMin{500};
  static constexpr std::chrono::milliseconds kRetryMax{10'000};
  /// In a row without a line, of a log that is not followed.
  static constexpr int kTriesMax = 6;
  /// A stream is asked to be opened anew after so long, whatever it says.
  static constexpr std::chrono::seconds kStreamMax{4 * 60 * 60};
  /// After its pod has gone, a stream that says nothing more is not waited for longer than this.
  static constexpr std::chrono::milliseconds kGoneMax{10'000};
  /// Of lines that wait until it is known whose they are.
  static constexpr std::size_t kHeldBytesMax = 1024 * 1024;

  /// `alarm` has a slot for it, by pod and container.
  PodLog(KubeApi& api, Alarm& alarm, PodLogRequest request, PodLogEvents events);
  ~PodLog();
  PodLog(const PodLog&) = delete;
  PodLog& operator=(const PodLog&) = delete;

  /// Begins, or goes on after `pause`.
  void resume();
  /// Closes the stream, from inside of on_line as well; no line is lost by that.
  void pause();
  bool is_open() const { return stream_ != nullptr; }
  bool has_ended() const { return has_ended_; }
  /// Of what is followed: the container has ended, or its pod is no more.
  void container_ended();
  void pod_gone();

 private:
  void open();
  void on_line(std::string_view line);
  void hold(std::string_view line);
  void deliver(std::string_view line);
  void ask_whose();
  void on_pod(const Result<std::string>& answer);
  void on_stream_end(const Result<void>& end);
  void after_stream_end(const Result<void>& end);
  void retry(const Error& problem);
  void open_after(std::chrono::milliseconds wait);
  void finish(Result<void> end);
  WatchRequest watch_request() const;

  KubeApi& api_;
  Alarm& alarm_;
  PodLogRequest request_;
  PodLogEvents events_;
  std::string slot_;
  ResumePoint point_;
  std::unique_ptr<WatchStream> stream_;
  // Of the stream that is open, until it is known whose it is.
  bool is_checked_ = true;
  std::vector<std::string> held_lines_;
  std::size_t held_bytes_ = 0;
  std::optional<Result<void>> held_end_;
  /// Too much came before the answer: the rest comes from a stream that is opened right after it.
  bool trusts_next_ = false;
  unsigned long long stream_number_ = 0;  // an answer about an earlier one is not listened to
  std::chrono::milliseconds retry_wait_{kRetryMin};
  int tries_ = 0;
  bool is_paused_ = true;
  bool is_waiting_ = false;  // for the next try
  bool opened_after_end_ = false;
  bool is_pod_gone_ = false;
  bool has_ended_ = false;
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace tj
