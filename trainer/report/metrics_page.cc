#include "trainer/report/metrics_page.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

namespace tj::trainer {
namespace {

std::string sample_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

class Page {
 public:
  void head(const std::string& name, const char* type, const char* help) {
    text_ += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
  }
  void sample(const std::string& name, double value) {
    text_ += name + " " + sample_text(value) + "\n";
  }
  void gauge(const std::string& name, const char* help, std::optional<double> value) {
    if (!value) return;
    head(name, "gauge", help);
    sample(name, *value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string capitalised(std::string word) {
  if (!word.empty()) word[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[0])));
  return word;
}

constexpr std::array kPhaseNames{"start", "step", "eval", "save", "end"};

}  // namespace

std::string metrics_page(const RunState& state) {
  const Progress& run = state.progress;
  const bool has_stepped = state.step_seconds > 0;
  const auto if_stepped = [&](double value) {
    return has_stepped ? std::optional(value) : std::nullopt;
  };
  Page page;
  page.gauge("trainer_attempt", "Attempt of the job, from 0.", run.attempt);
  page.head("trainer_phase", "gauge", "1 for what the run does now.");
  for (const auto* name : kPhaseNames)
    page.sample("trainer_phase{phase=\"" + std::string(name) + "\"}", run.phase == name ? 1 : 0);
  page.gauge("trainer_step", "Finished optimizer steps.", static_cast<double>(run.step));
  page.gauge("trainer_last_step", "The run ends after so many steps.",
             static_cast<double>(run.steps));
  page.gauge("trainer_loss", "Mean loss of the last step, of all ranks.", run.loss);
  page.gauge("trainer_eval_loss", "Mean loss of the last evaluation, of all ranks.",
             state.eval_loss);
  page.gauge("trainer_learning_rate", "Learning rate of the last step.", if_stepped(state.lr));
  page.gauge("trainer_gradient_norm", "Norm of the last gradient before clipping.",
             if_stepped(state.gradient_norm));
  page.gauge("trainer_step_seconds", "Seconds that the last step took.",
             if_stepped(state.step_seconds));
  page.gauge("trainer_exposed_communication_seconds",
             "Seconds of the last step in which rank 0 waited for other ranks.",
             state.exposed_seconds);
  for (const auto& metric : state.metrics)
    page.gauge("trainer_" + metric.name,
               (metric.label + " of the last step, of all ranks.").c_str(), metric.value);
  const std::string units = capitalised(state.unit);
  page.gauge("trainer_" + state.unit + "_per_second",
             (units + " per second of the last step, of all ranks.").c_str(),
             state.units_per_second);
  page.gauge("trainer_mfu_ratio",
             "Model FLOPs utilisation of the last step, where the peak is known.", run.mfu);
  page.gauge("trainer_eta_seconds", "Seconds until the last step.", run.eta_seconds);
  page.head("trainer_" + state.unit + "_total", "counter",
            (units + " trained on by this process, of all ranks.").c_str());
  page.sample("trainer_" + state.unit + "_total", state.units);
  if (run.last_checkpoint) {
    page.gauge("trainer_last_checkpoint_step", "Step of the newest complete checkpoint.",
               static_cast<double>(run.last_checkpoint->step));
  }
  page.gauge("trainer_heartbeat_age_seconds", "Seconds since the training thread last moved.",
             run.heartbeat_age_seconds);
  page.gauge("trainer_stalled_ranks", "Ranks that have not moved for longer than they may.",
             static_cast<double>(run.stalled.size()));
  page.head("trainer_goodput_seconds_total", "counter",
            "Seconds of the run, over all attempts, by what they were spent on.");
  for (int kind = 0; kind < kSpentKinds; ++kind) {
    const auto spent = static_cast<Spent>(kind);
    page.sample("trainer_goodput_seconds_total{kind=\"" + std::string(to_string(spent)) + "\"}",
                state.spending[spent]);
  }
  return page.take();
}

}  // namespace tj::trainer
