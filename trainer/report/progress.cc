#include "trainer/report/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace tj::trainer {
namespace {
constexpr int kBarCellsMax = 40;
constexpr int kBarCellsMin = 10;  // a narrower one says nothing
constexpr double kSecondsShownMax = 100.0 * 365 * 86'400;
}  // namespace

double tokens_per_second(const StepReport& report) {
  return report.seconds > 0 ? static_cast<double>(report.tokens) / report.seconds : 0;
}

std::string step_line(const StepReport& report) {
  char line[160];
  std::snprintf(line, sizeof line, "step %lld/%lld | loss %.4f | lr %.1e | %.0f tok/s | %.3f s",
                static_cast<long long>(report.step), static_cast<long long>(report.steps),
                report.loss, report.lr, tokens_per_second(report), report.seconds);
  std::string text = line;
  if (report.mfu) {
    std::snprintf(line, sizeof line, " | mfu %.1f %%", 100 * *report.mfu);
    text += line;
  }
  if (report.eta_seconds) text += " | eta " + time_left_text(*report.eta_seconds);
  return text;
}

std::string step_json(const StepReport& report) {
  nlohmann::ordered_json document = {{"step", report.step},
                                     {"steps", report.steps},
                                     {"loss", report.loss},
                                     {"lr", report.lr},
                                     {"gradient_norm", report.gradient_norm},
                                     {"tokens_per_second", tokens_per_second(report)},
                                     {"seconds", report.seconds}};
  if (report.mfu) document["mfu"] = *report.mfu;
  return document.dump();
}

std::string eval_line(const EvalReport& report) {
  char line[160];
  std::snprintf(line, sizeof line, "eval after step %lld | loss %.4f | %lld targets in %.2f s",
                static_cast<long long>(report.step), report.loss,
                static_cast<long long>(report.targets), report.seconds);
  return line;
}

std::string eval_json(const EvalReport& report) {
  return nlohmann::ordered_json({{"event", "eval"},
                                 {"at_step", report.step},
                                 {"eval_loss", report.loss},
                                 {"targets", report.targets},
                                 {"seconds", report.seconds}})
      .dump();
}

std::string progress_bar(const StepReport& report, int columns, bool has_colour) {
  char text[128];
  std::snprintf(text, sizeof text, " %lld/%lld | loss %.4f | %.0f tok/s",
                static_cast<long long>(report.step), static_cast<long long>(report.steps),
                report.loss, tokens_per_second(report));
  std::string words = text;
  if (report.eta_seconds) words += " | eta " + time_left_text(*report.eta_seconds);
  const int room = columns - 1 - static_cast<int>(words.size()) - 2;  // the last column would wrap
  const int cells = std::min(kBarCellsMax, room);
  if (cells < kBarCellsMin) {
    const auto width = static_cast<std::size_t>(std::max(1, columns - 1));
    return words.substr(1, width);
  }
  const double share =
      report.steps > 0 ? static_cast<double>(report.step) / static_cast<double>(report.steps) : 0;
  const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * cells);
  const std::string filled(full, '#');
  const std::string rest(static_cast<std::size_t>(cells) - full, '-');
  return "[" + (has_colour ? "\033[32m" + filled + "\033[0m" : filled) + rest + "]" + words;
}

std::string time_left_text(double seconds) {
  const auto whole =
      static_cast<long long>(std::lround(std::clamp(seconds, 0.0, kSecondsShownMax)));
  const long long days = whole / 86'400, hours = whole / 3600 % 24, minutes = whole / 60 % 60;
  char text[64];
  if (days > 0) {
    std::snprintf(text, sizeof text, "%lldd %lld:%02lld:%02lld", days, hours, minutes, whole % 60);
  } else if (hours > 0) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", hours, minutes, whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", minutes, whole % 60);
  }
  return text;
}

void Pace::step_done(Clock::time_point now) {
  done_.push_back(now);
  if (done_.size() > kStepsMax) done_.pop_front();
}

std::optional<double> Pace::seconds_per_step() const {
  if (done_.size() < 2) return std::nullopt;
  const std::chrono::duration<double> taken = done_.back() - done_.front();
  return taken.count() / static_cast<double>(done_.size() - 1);
}

double TokenCost::flops() const {
  return 6.0 * static_cast<double>(parameters) + 12.0 * static_cast<double>(layers) *
                                                     static_cast<double>(width) *
                                                     static_cast<double>(sequence_tokens);
}

}  // namespace tj::trainer
