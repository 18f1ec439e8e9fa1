#include "trainer/report/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>

namespace tj::trainer {
namespace {
constexpr int kBarCellsMax = 40;
constexpr int kBarCellsMin = 10;       // a narrower one says nothing
constexpr double kMilliseconds = 1e3;  // in a second
constexpr double kSecondsShownMax = 100.0 * 365 * 86'400;

/// " | PSNR 18.50 dB", for each; `after_label`: what stands between the label and the number.
std::string metrics_text(std::span<const MetricValue> metrics, const char* after_label = " ") {
  std::string text;
  for (const auto& metric : metrics) {
    char number[40];
    std::snprintf(number, sizeof number, "%.*f", metric.decimals, metric.value);
    text += " | " + metric.label + after_label + number +
            (metric.unit.empty() ? "" : " " + metric.unit);
  }
  return text;
}

/// Beside what else a document has; JSON has no number for what is not finite.
void add_metrics(nlohmann::ordered_json& document, const std::string& prefix,
                 std::span<const MetricValue> metrics) {
  for (const auto& metric : metrics) document[prefix + metric.name] = metric.value;
}

std::string speed_text(const StepReport& report) {
  char number[40];
  std::snprintf(number, sizeof number, "%.0f ", units_per_second(report));
  return number + report.unit.short_name + "/s";
}
}  // namespace

double units_per_second(const StepReport& report) {
  return report.seconds > 0 ? static_cast<double>(report.units) / report.seconds : 0;
}

std::string speed_name(const Unit& unit) { return unit.name + "_per_second"; }

std::optional<LogStyle> log_style_from(std::string_view name) {
  if (name == "trainer") return LogStyle::trainer;
  if (name == "platform") return LogStyle::platform;
  return std::nullopt;
}

std::string step_line(const StepReport& report, LogStyle style) {
  const bool is_ours = style == LogStyle::trainer;
  char line[160];
  std::snprintf(line, sizeof line, "%s %lld/%lld | %s %.4f", is_ours ? "step" : "Step",
                static_cast<long long>(report.step), static_cast<long long>(report.steps),
                is_ours ? "loss" : "Loss:", report.loss);
  std::string text = line + metrics_text(report.metrics, is_ours ? " " : ": ");
  std::snprintf(line, sizeof line, " | lr %.1e | ", report.lr);
  text += line + speed_text(report);
  std::snprintf(line, sizeof line, " | %.3f s", report.seconds);
  text += line;
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
                                     {speed_name(report.unit), units_per_second(report)},
                                     {"seconds", report.seconds}};
  if (report.exposed_seconds)
    document["exposed_communication_ms"] = *report.exposed_seconds * kMilliseconds;
  add_metrics(document, "", report.metrics);
  if (report.mfu) document["mfu"] = *report.mfu;
  return document.dump();
}

std::string eval_line(const EvalReport& report) {
  char line[80];
  std::snprintf(line, sizeof line, "eval after step %lld | loss %.4f",
                static_cast<long long>(report.step), report.loss);
  std::string text = line + metrics_text(report.metrics);
  std::snprintf(line, sizeof line, " in %.2f s", report.seconds);
  return text + " | " + std::to_string(report.weight) + " " + report.counted + line;
}

std::string eval_json(const EvalReport& report) {
  nlohmann::ordered_json document = {{"event", "eval"},
                                     {"at_step", report.step},
                                     {"eval_loss", report.loss},
                                     {report.counted, report.weight},
                                     {"seconds", report.seconds}};
  add_metrics(document, "eval_", report.metrics);
  return document.dump();
}

std::string reduction_line(const ReductionReport& report) {
  char line[120];
  std::snprintf(line, sizeof line, "reduce %s | cosine to the exact gradient %.4f at step %lld",
                report.codec.c_str(), report.cosine, static_cast<long long>(report.step));
  return line;
}

std::string given_up_line(const ReductionReport& report) {
  char line[200];
  std::snprintf(
      line, sizeof line,
      "reduce %s is given up: the cosine %.4f is below %g (--reduce-check-min); from step "
      "%lld on gradients are reduced exactly",
      report.codec.c_str(), report.cosine, report.cosine_min,
      static_cast<long long>(report.step + 1));
  return line;
}

std::string reduction_json(const ReductionReport& report) {
  const nlohmann::ordered_json document = {{"event", "reduce"},
                                           {"at_step", report.step},
                                           {"codec", report.codec},
                                           {"cosine", report.cosine},
                                           {"gave_up", report.gave_up}};
  return document.dump();
}

std::string progress_bar(const StepReport& report, int columns, bool has_colour) {
  char text[128];
  std::snprintf(text, sizeof text, " %lld/%lld | loss %.4f", static_cast<long long>(report.step),
                static_cast<long long>(report.steps), report.loss);
  std::string words = text + metrics_text(report.metrics) + " | " + speed_text(report);
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

}  // namespace tj::trainer
