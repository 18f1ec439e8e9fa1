#include "trainer/data/lerobot/statistics.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trainer/data/lerobot/json_place.h"
#include "trainer/data/lerobot/lerobot_set.h"
#include "trainer/process/durable_file.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr std::int64_t kBytesMax = 256 << 20;
constexpr std::size_t kLineBytesMax = 64 << 20;
constexpr double kEpsilon = 1e-8;  // NormalizerProcessorStep.eps

struct Named {
  const char* name;
  std::vector<double> FeatureStatistics::*values;
};
constexpr Named kMembers[] = {{"min", &FeatureStatistics::min},   {"max", &FeatureStatistics::max},
                              {"mean", &FeatureStatistics::mean}, {"std", &FeatureStatistics::std},
                              {"q01", &FeatureStatistics::q01},   {"q10", &FeatureStatistics::q10},
                              {"q50", &FeatureStatistics::q50},   {"q90", &FeatureStatistics::q90},
                              {"q99", &FeatureStatistics::q99}};

Error wrong(const std::string& subject, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = subject};
}

ordered_json to_json(const FeatureStatistics& statistics) {
  auto json = ordered_json::object();
  if (statistics.count > 0) json["count"] = statistics.count;
  for (const auto& member : kMembers)
    if (!(statistics.*member.values).empty()) json[member.name] = statistics.*member.values;
  return json;
}

/// LeRobot nests what is no row of numbers deeper, and of a single number writes an array of one.
FeatureStatistics feature_from(const JsonPlace& json) {
  FeatureStatistics statistics;
  if (json.has("count")) {
    const auto count = json.at("count");
    const auto& value = count.value();
    const JsonPlace first =
        value.is_array() && !value.empty() ? JsonPlace(value.front(), count.name() + "[0]") : count;
    statistics.count = first.integer(1, std::int64_t{1} << 60);
  }
  for (const auto& member : kMembers) {
    if (!json.has(member.name)) continue;
    auto& values = statistics.*member.values;
    json.at(member.name).each([&](const JsonPlace& value) {
      if (static_cast<std::int64_t>(values.size()) >= kLeRobotWidthMax)
        throw json.at(member.name).wrong("is too long");
      values.push_back(value.number());
    });
  }
  return statistics;
}

ActionRule rule_from(const JsonPlace& json) {
  ActionRule rule;
  rule.horizon = json.at("horizon").integer(1, 100'000);
  json.at("delta_actions").each([&](const JsonPlace& value) {
    if (!value.value().is_boolean()) throw value.wrong("must be true or false");
    rule.is_delta.push_back(value.value().get<bool>());
  });
  return rule;
}

RobotStatistics ours_from(const JsonPlace& json) {
  json.at("version").integer(kVersion, kVersion);
  RobotStatistics statistics;
  statistics.data_set = json.at("data_set").text();
  statistics.fingerprint = json.at("fingerprint").text();
  statistics.rule = rule_from(json);
  statistics.state_name = json.at("state").at("feature").text();
  statistics.state = feature_from(json.at("state"));
  statistics.action_name = json.at("action").at("feature").text();
  statistics.action = feature_from(json.at("action"));
  return statistics;
}

/// Several episodes as one: counts add up, and of means and spreads the exact ones come of the
/// parts (Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample
/// variances, 1979). Quantiles do not, and are left out.
class Joined {
 public:
  void add(const FeatureStatistics& part) {
    const auto width = part.mean.size();
    if (part.count < 1 || part.std.size() != width || part.min.size() != width ||
        part.max.size() != width || (all_.count > 0 && width != all_.mean.size()))
      throw std::runtime_error("lacks count, min, max, mean or std, or has another width");
    if (all_.count == 0) {
      all_ = part;
      all_.q01 = all_.q10 = all_.q50 = all_.q90 = all_.q99 = {};
      squares_.resize(width);
      for (std::size_t i = 0; i < width; ++i)
        squares_[i] = part.std[i] * part.std[i] * static_cast<double>(part.count);
      return;
    }
    const auto before = static_cast<double>(all_.count), added = static_cast<double>(part.count);
    for (std::size_t i = 0; i < width; ++i) {
      const auto distance = part.mean[i] - all_.mean[i];
      squares_[i] += part.std[i] * part.std[i] * added +
                     distance * distance * before * added / (before + added);
      all_.mean[i] += distance * added / (before + added);
      all_.min[i] = std::min(all_.min[i], part.min[i]);
      all_.max[i] = std::max(all_.max[i], part.max[i]);
    }
    all_.count += part.count;
  }
  FeatureStatistics end() && {
    for (std::size_t i = 0; i < squares_.size(); ++i)
      all_.std[i] = std::sqrt(squares_[i] / static_cast<double>(all_.count));
    return std::move(all_);
  }

 private:
  FeatureStatistics all_;
  std::vector<double> squares_;  // sums of those of the distances from the mean
};

/// Of v2.1: a line is an episode.
Result<void> read_episodes_stats(const fs::path& path, RobotStatistics& statistics) {
  std::ifstream file(path);
  if (!file) return wrong(path.string(), "can't be opened");
  Joined state, action;
  std::string line;
  std::int64_t number = 0;
  while (std::getline(file, line)) {
    ++number;
    const auto place = "line " + std::to_string(number) + ": ";
    if (line.empty()) continue;
    if (line.size() > kLineBytesMax) return wrong(path.string(), place + "is too long");
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) return wrong(path.string(), place + "is no JSON object");
    try {
      const auto stats = JsonPlace(json, "").at("stats");
      state.add(feature_from(stats.at(statistics.state_name)));
      action.add(feature_from(stats.at(statistics.action_name)));
    } catch (const std::exception& failure) {
      return wrong(path.string(), place + failure.what());
    }
  }
  if (number == 0) return wrong(path.string(), "has no episode");
  statistics.state = std::move(state).end();
  statistics.action = std::move(action).end();
  return {};
}

Result<void> read_stats(const fs::path& path, RobotStatistics& statistics) try {
  const auto text = read_small_file(path, kBytesMax);
  if (!text) return text.error();
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object()) return wrong(path.string(), "is no JSON object");
  const JsonPlace all(json, "");
  statistics.state = feature_from(all.at(statistics.state_name));
  statistics.action = feature_from(all.at(statistics.action_name));
  return {};
} catch (const std::exception& failure) {
  return wrong(path.string(), failure.what());
}

const char* const kMake = "; `trainer prepare lerobot` makes those of this one";

/// The data set's own.
Result<RobotStatistics> own_statistics(const LeRobotSet& set, const RobotStatistics& wanted) {
  auto statistics = wanted;
  const auto meta = set.folder / "meta";
  if (wanted.rule.has_delta())
    return wrong(meta.string(),
                 "its statistics are of actions as they are, and these are minus the state; "
                 "`trainer prepare lerobot --delta-actions ... --horizon N` makes those");
  std::error_code failure;
  for (const auto* name : {"stats.json", "episodes_stats.jsonl"}) {
    const auto file = meta / name;
    if (!fs::exists(file, failure)) continue;
    statistics.origin = file.string();
    const auto read = file.extension() == ".json" ? read_stats(file, statistics)
                                                  : read_episodes_stats(file, statistics);
    if (!read) return read.error();
    return statistics;
  }
  return wrong(meta.string(), "has no statistics (stats.json, episodes_stats.jsonl, " +
                                  std::string(kStatisticsFile) + ")" + kMake);
}

std::string rule_text(const ActionRule& rule) {
  if (!rule.has_delta()) return "actions as they are";
  std::string text = "actions minus the state in dimensions";
  for (std::size_t i = 0; i < rule.is_delta.size(); ++i)
    if (rule.is_delta[i]) text += " " + std::to_string(i);
  return text + ", over " + std::to_string(rule.horizon) + " steps";
}

Result<void> check_same(const RobotStatistics& statistics, const LeRobotSet& set,
                        const RobotStatistics& wanted) {
  if (statistics.fingerprint != set.fingerprint)
    return wrong(statistics.origin, "are statistics of another data set, " + statistics.data_set +
                                        " (fingerprint " + statistics.fingerprint.substr(0, 12) +
                                        "), and not of " + set.name + " (" +
                                        set.fingerprint.substr(0, 12) + ")" + kMake);
  if (statistics.state_name != wanted.state_name || statistics.action_name != wanted.action_name)
    return wrong(statistics.origin, "are statistics of the features " + statistics.state_name +
                                        " and " + statistics.action_name + ", and not of " +
                                        wanted.state_name + " and " + wanted.action_name + kMake);
  const bool is_same = statistics.rule.has_delta() == wanted.rule.has_delta() &&
                       (!wanted.rule.has_delta() || statistics.rule == wanted.rule);
  if (is_same) return {};
  return wrong(statistics.origin, "are statistics of " + rule_text(statistics.rule) +
                                      ", and not of " + rule_text(wanted.rule) + kMake);
}

}  // namespace

bool ActionRule::has_delta() const {
  return std::ranges::any_of(is_delta, [](bool is) { return is; });
}

std::string statistics_json(const RobotStatistics& statistics) {
  const auto feature = [](const std::string& name, const FeatureStatistics& of) {
    ordered_json json = {{"feature", name}};
    json.update(to_json(of));
    return json;
  };
  const ordered_json json = {{"version", kVersion},
                             {"data_set", statistics.data_set},
                             {"fingerprint", statistics.fingerprint},
                             {"horizon", statistics.rule.horizon},
                             {"delta_actions", statistics.rule.is_delta},
                             {"state", feature(statistics.state_name, statistics.state)},
                             {"action", feature(statistics.action_name, statistics.action)}};
  return json.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<RobotStatistics> statistics_from(std::string_view text) try {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return wrong("", "is no JSON object");
  return ours_from(JsonPlace(json, ""));
} catch (const std::exception& failure) {
  return wrong("", failure.what());
}

Result<RobotStatistics> statistics_for(const LeRobotSet& set, const fs::path& file,
                                       const RobotStatistics& wanted) {
  std::error_code failure;
  const auto beside = set.folder / "meta" / kStatisticsFile;
  const auto path = file.empty() ? beside : file;
  if (file.empty() && !fs::exists(beside, failure)) return own_statistics(set, wanted);
  const auto text = read_small_file(path, kBytesMax);
  if (!text) return text.error();
  auto statistics = statistics_from(*text);
  if (!statistics) return wrong(path.string(), statistics.error().message);
  statistics->origin = path.string();
  if (auto same = check_same(*statistics, set, wanted); !same) return same.error();
  return statistics;
}

Result<Normaliser> Normaliser::make(Normalisation kind, const FeatureStatistics& statistics,
                                    std::int64_t width, const std::string& what) {
  Normaliser made;
  const auto size = static_cast<std::size_t>(width);
  made.offset_.assign(size, 0);
  made.scale_.assign(size, 1);
  made.scale_back_.assign(size, 1);
  if (kind == Normalisation::none) return made;
  const bool is_by_mean = kind == Normalisation::mean_std;
  const auto& low = is_by_mean ? statistics.mean : statistics.q01;
  const auto& high = is_by_mean ? statistics.std : statistics.q99;
  if (low.size() != size || high.size() != size)
    return wrong(what, std::string("its statistics have ") +
                           (is_by_mean ? "mean and std" : "q01 and q99") + " of " +
                           std::to_string(low.size()) + " and " + std::to_string(high.size()) +
                           " dimensions, and it has " + std::to_string(width) + kMake);
  for (std::size_t i = 0; i < size; ++i) {
    const auto first = static_cast<float>(low[i]), second = static_cast<float>(high[i]);
    if (!std::isfinite(first) || !std::isfinite(second))
      return wrong(what, "its statistics are not finite in dimension " + std::to_string(i));
    constexpr auto kSmall = static_cast<float>(kEpsilon);
    made.offset_[i] = first;
    if (is_by_mean) {
      made.scale_[i] = second + kSmall;
      made.scale_back_[i] = second;
    } else {
      const auto range = second - first;
      made.scale_[i] = made.scale_back_[i] = (range == 0 ? kSmall : range) / 2;
    }
  }
  made.shift_ = is_by_mean ? 0.0F : -1.0F;
  return made;
}

void Normaliser::apply(std::span<float> values) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto dimension = i % offset_.size();
    values[i] = (values[i] - offset_[dimension]) / scale_[dimension] + shift_;
  }
}

void Normaliser::undo(std::span<float> values) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto dimension = i % offset_.size();
    values[i] = (values[i] - shift_) * scale_back_[dimension] + offset_[dimension];
  }
}

}  // namespace tj::trainer
