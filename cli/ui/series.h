// A quantity over the time of a run, in bounded memory: when it is full, every second point goes,
// and from then on every second one that comes. The newest is always there.
#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

namespace tj::ui {

struct SeriesPoint {
  double time = 0;  // seconds since 1970
  long long step = 0;
  double value = 0;
  bool operator==(const SeriesPoint&) const = default;
};

class Series {
 public:
  static constexpr std::size_t kPointsMax = 2'000;

  /// One that is not finite, or is the last one again, is left out.
  void add(const SeriesPoint& point);
  /// In the order of their coming.
  std::vector<SeriesPoint> points() const;
  bool empty() const { return kept_.empty(); }

 private:
  std::vector<SeriesPoint> kept_;
  std::optional<SeriesPoint> newest_;
  std::size_t stride_ = 1;
  std::size_t since_kept_ = 0;
};

/// What a page draws of one job.
struct RunSeries {
  Series loss;
  Series rate;     // tokens (or what the workload counts) a second, of all ranks
  Series goodput;  // 0 to 1
};

/// {"loss": {"time": [...], "step": [...], "value": [...]}, "rate": ..., "goodput": ...}
nlohmann::json to_json(const RunSeries& series);
/// At most `points_max` values, evenly taken; the newest is the last.
std::vector<double> sparkline(const Series& series, std::size_t points_max);

}  // namespace tj::ui
