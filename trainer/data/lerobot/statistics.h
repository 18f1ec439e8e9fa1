// Statistics of states and actions, and the normalisation by them, as pi0 and pi05 use them. Where
// they come from (the data set's own, or `trainer prepare lerobot`), and whether they are of this
// data set.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"

namespace tj::trainer {

struct LeRobotSet;

/// Of each dimension of a feature; a list is empty where it is not known.
struct FeatureStatistics {
  std::int64_t count = 0;  // values of a dimension
  std::vector<double> min, max, mean, std;
  std::vector<double> q01, q10, q50, q90, q99;
  bool operator==(const FeatureStatistics&) const = default;
};

/// Which actions statistics are of.
struct ActionRule {
  /// True for a dimension: minus the state of the sample's frame. Empty: none is. Where any is, the
  /// statistics are over all actions of all chunks, those beyond the end of an episode left out;
  /// else over each frame once.
  std::vector<bool> is_delta;
  std::int64_t horizon = 1;  // actions of a chunk; matters to delta actions alone
  bool has_delta() const;
  bool operator==(const ActionRule&) const = default;
};

struct RobotStatistics {
  std::string state_name;  // features
  std::string action_name;
  FeatureStatistics state;
  FeatureStatistics action;
  ActionRule rule;
  std::string origin;       // the file
  std::string data_set;     // name
  std::string fingerprint;  // of the data set; empty: of the one that the file lies in
};

/// Below meta/ of a data set, or where --out of `trainer prepare lerobot` says.
inline constexpr const char* kStatisticsFile = "trainer_stats.json";

std::string statistics_json(const RobotStatistics& statistics);
/// Of such a text. Fails with Code::invalid and names the field.
Result<RobotStatistics> statistics_from(std::string_view json);

/// What to normalise the data set with: `file` where it is not empty, else kStatisticsFile in its
/// meta/, else its own meta/stats.json or meta/episodes_stats.jsonl. Fails with Code::invalid where
/// they are of another data set, which is named, of other features or of other actions.
Result<RobotStatistics> statistics_for(const LeRobotSet& set, const std::filesystem::path& file,
                                       const RobotStatistics& wanted);

enum class Normalisation { none, mean_std, quantiles };

/// LeRobot's rules (lerobot/processor/normalize_processor.py): (x - mean) / (std + 1e-8), or
/// 2 (x - q01) / (q99 - q01) - 1, with 1e-8 for a difference of 0; in float32.
class Normaliser {
 public:
  /// Fails with Code::invalid where `statistics` have not what it takes, or another width; `what`
  /// is the feature, by name.
  static Result<Normaliser> make(Normalisation kind, const FeatureStatistics& statistics,
                                 std::int64_t width, const std::string& what);
  /// Rows of the width, in place.
  void apply(std::span<float> values) const;
  /// What a policy gives back, as the robot takes it.
  void undo(std::span<float> values) const;

 private:
  std::vector<float> offset_;  // of each dimension
  std::vector<float> scale_;   // x -> (x - offset) / scale + shift
  std::vector<float> scale_back_;
  float shift_ = 0;
};

}  // namespace tj::trainer
