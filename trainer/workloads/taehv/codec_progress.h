// How far a command is with its frames, and where its time goes. No torch.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace tj::trainer {

class CodecProgress {
 public:
  enum class Work { input, model, output };

  /// `verb` begins the lines: "encode".
  CodecProgress(std::string verb, std::int64_t frames);

  /// What is done from here on.
  void begin(Work work);
  /// So many frames of all are done; says so, now and then, on standard error.
  void reach(std::int64_t frames);
  /// "in 0.52 s | 117.3 frames/s | model 0.40 s, input 0.02 s, output 0.10 s"
  std::string end_text();

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_since_start() const;

  const std::string verb_;
  const std::int64_t frames_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_line_ = start_;
  Clock::time_point work_began_ = start_;
  Work work_ = Work::input;
  Clock::duration spent_[3] = {};  // by Work
};

}  // namespace tj::trainer
