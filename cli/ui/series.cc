#include "cli/ui/series.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tj::ui {
namespace {

nlohmann::json columns(const Series& series) {
  nlohmann::json time = nlohmann::json::array();
  nlohmann::json step = nlohmann::json::array();
  nlohmann::json value = nlohmann::json::array();
  auto points = series.points();
  std::ranges::stable_sort(points, {}, &SeriesPoint::time);  // files of attempts may overlap
  for (const SeriesPoint& point : points) {
    time.push_back(point.time);
    step.push_back(point.step);
    value.push_back(point.value);
  }
  return {{"time", std::move(time)}, {"step", std::move(step)}, {"value", std::move(value)}};
}

}  // namespace

void Series::add(const SeriesPoint& point) {
  const bool is_finite = std::isfinite(point.value) && std::isfinite(point.time);
  if (!is_finite || newest_ == point) return;
  newest_ = point;
  if (since_kept_++ % stride_ != 0) return;
  kept_.push_back(point);
  if (kept_.size() < kPointsMax) return;
  for (std::size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
  kept_.resize((kept_.size() + 1) / 2);
  stride_ *= 2;
  since_kept_ = stride_ / 2 + 1;  // the last that came went; the next to stay is a half stride away
}

std::vector<SeriesPoint> Series::points() const {
  std::vector<SeriesPoint> points = kept_;
  if (newest_ && (points.empty() || points.back() != *newest_)) points.push_back(*newest_);
  return points;
}

nlohmann::json to_json(const RunSeries& series) {
  return {{"loss", columns(series.loss)},
          {"rate", columns(series.rate)},
          {"goodput", columns(series.goodput)}};
}

std::vector<double> sparkline(const Series& series, std::size_t points_max) {
  const auto points = series.points();
  std::vector<double> values;
  const std::size_t count = std::min(points.size(), points_max);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = count == 1 ? points.size() - 1 : i * (points.size() - 1) / (count - 1);
    values.push_back(points[at].value);
  }
  return values;
}

}  // namespace tj::ui
