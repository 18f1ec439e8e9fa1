#include "trainer/workloads/taehv/codec_progress.h"

#include <cstdio>
#include <utility>

#include "trainer/process/lines.h"

namespace tj::trainer {
namespace {

constexpr std::chrono::seconds kLineInterval{5};

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

CodecProgress::CodecProgress(std::string verb, std::int64_t frames)
    : verb_(std::move(verb)), frames_(frames) {}

double CodecProgress::seconds_since_start() const { return seconds(Clock::now() - start_); }

void CodecProgress::begin(Work work) {
  const auto now = Clock::now();
  spent_[static_cast<std::size_t>(work_)] += now - work_began_;
  work_began_ = now;
  work_ = work;
}

void CodecProgress::reach(std::int64_t frames) {
  const auto now = Clock::now();
  if (frames == 0 || now - last_line_ < kLineInterval) return;
  last_line_ = now;
  const double rate = static_cast<double>(frames) / seconds_since_start();
  char line[160];
  std::snprintf(line, sizeof line, "%s: %lld of %lld frames | %.0f %% | %.1f frames/s | ETA %.0f s",
                verb_.c_str(), static_cast<long long>(frames), static_cast<long long>(frames_),
                100 * static_cast<double>(frames) / static_cast<double>(frames_), rate,
                static_cast<double>(frames_ - frames) / rate);
  say_error(line);
}

std::string CodecProgress::end_text() {
  begin(work_);  // what it was busy with counts until now
  const double all = seconds_since_start();
  const auto of = [&](Work work) { return seconds(spent_[static_cast<std::size_t>(work)]); };
  char text[160];
  std::snprintf(
      text, sizeof text, "in %.2f s | %.1f frames/s | model %.2f s, input %.2f s, output %.2f s",
      all, static_cast<double>(frames_) / all, of(Work::model), of(Work::input), of(Work::output));
  return text;
}

}  // namespace tj::trainer
