#include "trainer/report/tensorboard.h"

#include <array>

#include "trainer/report/ledger_file.h"

namespace tj::trainer {
namespace {

EventTime at(std::int64_t step) { return {.unix_seconds = unix_seconds(), .step = step}; }

/// A value holds its tag as a view.
std::vector<std::string> metric_tags(const std::string& group,
                                     std::span<const MetricValue> metrics) {
  std::vector<std::string> tags;
  for (const auto& metric : metrics) tags.push_back(group + metric.name);
  return tags;
}

}  // namespace

Result<TensorBoard> TensorBoard::create(const std::filesystem::path& folder,
                                        const std::string& host) {
  auto file = EventFile::create(folder, host);
  if (!file) return file.error();
  return TensorBoard(std::move(*file));
}

void TensorBoard::begin(std::int64_t first_step, std::span<const Setting> table,
                        std::span<const Setting> plan, const Unit& unit) {
  const auto now = at(first_step);
  file_->add(session_start_event(now));
  file_->add(text_event(now, "settings", settings_markdown(table)));
  const std::string speed = "speed/" + speed_name(unit);
  const std::string_view metrics[] = {"train/loss", speed};
  file_->add(hparams_experiment_event(now, plan, metrics));
  file_->add(hparams_event(now, plan));
}

void TensorBoard::step(const StepReport& report, const Spending& spending) {
  const std::string speed = "speed/" + speed_name(report.unit);
  std::vector<ScalarValue> values{{"train/loss", report.loss},
                                  {"train/learning_rate", report.lr},
                                  {"train/gradient_norm", report.gradient_norm},
                                  {speed, units_per_second(report)},
                                  {"speed/step_seconds", report.seconds}};
  if (report.exposed_seconds)
    values.push_back({"speed/exposed_communication_ms", *report.exposed_seconds * 1e3});
  if (report.mfu) values.push_back({"speed/mfu", *report.mfu});
  const auto tags_of_metrics = metric_tags("train/", report.metrics);
  for (std::size_t i = 0; i < report.metrics.size(); ++i)
    values.push_back({tags_of_metrics[i], report.metrics[i].value});
  std::array<std::string, kSpentKinds> tags;
  const double total = spending.total();
  for (int kind = 0; kind < kSpentKinds && total > 0; ++kind) {
    const auto spent = static_cast<Spent>(kind);
    auto& tag = tags[static_cast<std::size_t>(kind)];
    tag = std::string("goodput/") + to_string(spent);
    values.push_back({tag, spending[spent] / total});
  }
  file_->add(scalars_event(at(report.step), values));
  step_seconds_.push_back(report.seconds);
  gradient_norms_.push_back(report.gradient_norm);
  if (step_seconds_.size() >= kHistogramSteps) write_histograms(report.step);
}

void TensorBoard::evaluated(const EvalReport& report) {
  std::vector<ScalarValue> values{{"eval/loss", report.loss}};
  const auto tags = metric_tags("eval/", report.metrics);
  for (std::size_t i = 0; i < report.metrics.size(); ++i)
    values.push_back({tags[i], report.metrics[i].value});
  file_->add(scalars_event(at(report.step), values));
}

void TensorBoard::reduction_checked(const ReductionReport& report) {
  const std::vector<ScalarValue> values{{"reduce/cosine", report.cosine}};
  file_->add(scalars_event(at(report.step), values));
}

void TensorBoard::picture(std::int64_t step, const Picture& picture, const std::string& png) {
  file_->add(
      image_event(at(step), "eval/picture",
                  {.width = picture.size.width, .height = picture.size.height, .bytes = png}));
}

void TensorBoard::write_histograms(std::int64_t step) {
  file_->add(histogram_event(at(step), "speed/step_seconds_of_100", step_seconds_));
  file_->add(histogram_event(at(step), "train/gradient_norm_of_100", gradient_norms_));
  step_seconds_.clear();
  gradient_norms_.clear();
}

void TensorBoard::end(std::int64_t step, SessionStatus status) {
  if (!step_seconds_.empty()) write_histograms(step);
  file_->add(hparams_end_event(at(step), status));
  (void)file_->flush();
}

}  // namespace tj::trainer
