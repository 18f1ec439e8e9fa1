#include "trainer/data/lerobot/prepare_lerobot.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <set>

#include "trainer/data/lerobot/exact_statistics.h"
#include "trainer/data/lerobot/statistics_notes.h"
#include "trainer/data/video/prepare_video.h"
#include "trainer/process/crew.h"
#include "trainer/process/durable_file.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr const char* kNotesFile = ".trainer_stats.json.part";
constexpr std::int64_t kPartFrames = 65'536;

Failure save_failed(const Error& error) {
  return {.exit_code = exit_code::kInputOutput,
          .reason = "SaveFailed",
          .message = describe(error) + "; --out names another folder"};
}

/// Where the data can't be read now, another attempt may.
Failure not_read(const Error& error) {
  return error.code == Code::invalid || error.code == Code::not_found
             ? bad_data(error)
             : bad_data(BadDataError(error));
}

class LeRobotPreparation {
 public:
  LeRobotPreparation(const PrepareLeRobotOptions& options, const PrepareLeRobotHooks& hooks)
      : options_(options), hooks_(hooks) {}

  PrepareLeRobotEnd run() {
    auto failure = begin();
    if (!failure) failure = index_videos();
    if (!failure) failure = open_notes();
    if (!failure) failure = passes();
    if (!failure) failure = commit();
    return {.failure = std::move(failure), .file = file(), .table = table()};
  }

 private:
  fs::path folder() const {
    return options_.out.empty() ? set_.folder / "meta" : fs::path(options_.out);
  }
  fs::path file() const { return folder() / kStatisticsFile; }

  std::optional<Failure> begin() {
    const auto mask = delta_mask_from(options_.delta_actions);
    if (!mask) return bad_config(mask.error());
    rule_ = {.is_delta = *mask, .horizon = options_.horizon};
    auto set = open_lerobot_set({.folder = options_.input,
                                 .flag = "--input",
                                 .state = options_.state,
                                 .action = options_.action,
                                 .parquet_plugin = hooks_.parquet_plugin,
                                 .threads = options_.threads,
                                 .stop_signal = hooks_.stop_signal});
    if (!set) return hooks_.stop_signal() != 0 ? stopped() : not_read(set.error());
    set_ = std::move(*set);
    const auto most = std::min(set_.state.width, set_.action.width);
    if (static_cast<std::int64_t>(mask->size()) > most)
      return bad_config({.code = Code::invalid,
                         .message = "says " + std::to_string(mask->size()) +
                                    " dimensions, and the state has " +
                                    std::to_string(set_.state.width) + " and the action " +
                                    std::to_string(set_.action.width),
                         .subject = "--delta-actions " + options_.delta_actions});
    rule_.is_delta.resize(static_cast<std::size_t>(set_.action.width));
    parts_ = frame_parts(set_);
    return std::nullopt;
  }

  Failure stopped() const {
    return {.exit_code = exit_code::kInterrupted,
            .reason = "Interrupted",
            .message = "asked to stop by signal " + std::to_string(hooks_.stop_signal()) +
                       "; the same command goes on from there"};
  }

  std::optional<Failure> index_videos() {
    if (set_.meta.videos.empty()) return std::nullopt;
    const auto videos = (set_.folder / "videos").string();
    const PrepareVideoHooks hooks{.plugin = hooks_.video_plugin,
                                  .progress =
                                      [this](const PrepareVideoProgress& progress) {
                                        if (hooks_.progress)
                                          hooks_.progress("videos " + progress_line(progress));
                                      },
                                  .stop_signal = hooks_.stop_signal,
                                  .progress_interval = hooks_.progress_interval};
    auto end =
        prepare_video({.input = videos, .out = options_.out, .threads = options_.threads}, hooks);
    if (end.failure) return end.failure;
    const std::set<std::string> of_set(set_.meta.videos.begin(), set_.meta.videos.end());
    for (const auto& entry : end.entries) {
      const auto name = "videos/" + entry.name;
      if (of_set.contains(name) && !entry.broken.empty())
        return bad_data({.code = Code::invalid,
                         .message = entry.broken,
                         .subject = (set_.folder / name).string()});
    }
    return std::nullopt;
  }

  std::optional<Failure> open_notes() {
    std::error_code failure;
    fs::create_directories(folder(), failure);
    std::string key = set_.fingerprint + " " + options_.state + " " + options_.action + " " +
                      std::to_string(rule_.has_delta() ? rule_.horizon : 1) + " ";
    for (const bool is : rule_.is_delta) key += is ? '1' : '0';
    auto notes = StatisticsNotes::open(folder() / kNotesFile, key, dimensions());
    if (!notes)
      return notes.error().code == Code::conflict ? bad_config(notes.error())
                                                  : save_failed(notes.error());
    notes_ = std::move(*notes);
    return std::nullopt;
  }
  std::size_t dimensions() const {
    return static_cast<std::size_t>(set_.state.width + set_.action.width);
  }

  std::optional<Failure> passes() {
    first_.resize(parts_.size());
    second_.resize(parts_.size());
    if (auto failure = pass(1)) return failure;
    all_first_ = first_.front();
    for (std::size_t part = 1; part < parts_.size(); ++part)
      for (std::size_t i = 0; i < dimensions(); ++i) all_first_[i].join(first_[part][i]);
    for (const auto& found : all_first_) searches_.emplace_back(found);
    return pass(2);
  }

  std::optional<Failure> pass(int number) {
    next_ = 0;
    done_ = 0;
    begun_ = steady_clock::now();
    Crew crew(hooks_.stop_signal);
    const auto work = [&]() -> std::optional<Failure> {
      while (!crew.is_stopping()) {
        const std::size_t part = next_++;
        if (part >= parts_.size()) break;
        const auto kept = number == 1 ? look_at_first(part) : look_at_second(part);
        if (!kept) return save_failed(kept.error());
        ++done_;
      }
      return std::nullopt;
    };
    const auto tell = [&] {
      const std::chrono::duration<double> taken = steady_clock::now() - begun_;
      const auto all = static_cast<std::int64_t>(parts_.size());
      if (hooks_.progress)
        hooks_.progress(progress_line({.stage = "statistics",
                                       .done = done_ + (number == 2 ? all : 0),
                                       .all = 2 * all,
                                       .seconds = taken.count()}));
    };
    if (auto failure = crew.run(options_.threads, work, hooks_.progress_interval, tell))
      return failure;
    if (done_ != static_cast<std::int64_t>(parts_.size())) return stopped();
    return std::nullopt;
  }

  std::vector<float> values(std::size_t part, std::size_t dimension) const {
    const auto number = static_cast<std::int64_t>(dimension);
    if (number < set_.state.width) return state_values(set_, parts_[part], number);
    return action_values(set_, parts_[part], number - set_.state.width, rule_);
  }
  Result<void> look_at_first(std::size_t part) {
    if (const auto known = notes_->first.find(part); known != notes_->first.end()) {
      first_[part] = known->second;
      return {};
    }
    for (std::size_t i = 0; i < dimensions(); ++i)
      first_[part].push_back(first_pass_of(values(part, i)));
    return notes_->write(part, first_[part]);
  }
  Result<void> look_at_second(std::size_t part) {
    if (const auto known = notes_->second.find(part); known != notes_->second.end()) {
      second_[part] = known->second;
      return {};
    }
    for (std::size_t i = 0; i < dimensions(); ++i)
      second_[part].push_back(second_pass_of(values(part, i), searches_[i]));
    return notes_->write(part, second_[part]);
  }

  /// The statistics appear whole, and the notes go only then.
  std::optional<Failure> commit() {
    auto second = second_.front();
    for (std::size_t part = 1; part < parts_.size(); ++part)
      for (std::size_t i = 0; i < dimensions(); ++i) second[i].join(second_[part][i]);
    const auto state = static_cast<std::size_t>(set_.state.width);
    const std::span<const FirstPass> first(all_first_);
    const std::span<const SecondPass> seconds(second);
    statistics_ = {.state_name = options_.state,
                   .action_name = options_.action,
                   .state = exact_statistics(first.first(state), seconds.first(state)),
                   .action = exact_statistics(first.subspan(state), seconds.subspan(state)),
                   .rule = rule_,
                   .origin = file().string(),
                   .data_set = set_.name,
                   .fingerprint = set_.fingerprint};
    const auto draft = folder() / (std::string(".") + kStatisticsFile + ".draft");
    if (const auto written = write_durably(draft, statistics_json(statistics_)); !written)
      return save_failed(written.error());
    std::error_code failure;
    fs::rename(draft, file(), failure);
    if (failure)
      return save_failed({.code = Code::unavailable,
                          .message = "can't be renamed: " + failure.message(),
                          .subject = draft.string()});
    if (const auto synced = sync_folder(folder()); !synced) return save_failed(synced.error());
    notes_->remove();
    return std::nullopt;
  }

  static std::string row(const std::string& name, const FeatureStatistics& of) {
    std::string text;
    for (std::size_t i = 0; i < of.mean.size(); ++i) {
      char line[200];
      std::snprintf(line, sizeof line,
                    "  %s[%zu]  mean %.4g  std %.4g  from %.4g to %.4g  1%% %.4g  99%% %.4g\n",
                    name.c_str(), i, of.mean[i], of.std[i], of.min[i], of.max[i], of.q01[i],
                    of.q99[i]);
      text += line;
    }
    return text;
  }
  std::string table() const {
    if (statistics_.origin.empty()) return "";
    std::string cameras;
    for (const auto& camera : set_.info.cameras())
      cameras += (cameras.empty() ? "" : ", ") + camera;
    return "data set  " + set_.text() + ", " + number_text(set_.info.fps) + " frames a second\n" +
           "tasks     " + grouped(static_cast<std::int64_t>(set_.meta.tasks.size())) + "\n" +
           "cameras   " + (cameras.empty() ? "none" : cameras) + "\n" + "videos    " +
           grouped(static_cast<std::int64_t>(set_.meta.videos.size())) + "\n" +
           row("state", statistics_.state) + row("action", statistics_.action);
  }

  const PrepareLeRobotOptions& options_;
  const PrepareLeRobotHooks& hooks_;
  LeRobotSet set_;
  ActionRule rule_;
  std::vector<FramePart> parts_;
  std::unique_ptr<StatisticsNotes> notes_;
  std::vector<FirstPasses> first_;  // of each part, by the one thread that has it
  FirstPasses all_first_;
  std::vector<SecondSearch> searches_;
  std::vector<SecondPasses> second_;
  RobotStatistics statistics_;
  steady_clock::time_point begun_ = steady_clock::now();
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::int64_t> done_ = 0;
};

}  // namespace

std::string progress_line(const PrepareLeRobotProgress& progress) {
  const auto done = static_cast<double>(progress.done), all = static_cast<double>(progress.all);
  char eta[32] = "?";
  if (done > 0) std::snprintf(eta, sizeof eta, "%.0f s", (all - done) * progress.seconds / done);
  char line[200];
  std::snprintf(line, sizeof line, "%s %.0f %% | %lld/%lld parts | ETA %s", progress.stage.c_str(),
                100 * done / std::max(1.0, all), static_cast<long long>(progress.done),
                static_cast<long long>(progress.all), eta);
  return line;
}

Result<std::vector<bool>> delta_mask_from(const std::string& text) {
  std::vector<bool> mask;
  std::string_view rest = text;
  while (!text.empty()) {
    const auto word = rest.substr(0, rest.find(','));
    int count = 0;
    const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), count);
    const bool is_number = failure == std::errc() && end == word.data() + word.size();
    const bool fits = count >= -kLeRobotWidthMax && count <= kLeRobotWidthMax &&
                      static_cast<std::int64_t>(mask.size()) <= kLeRobotWidthMax;
    if (!is_number || count == 0 || !fits)
      return Error{.code = Code::invalid,
                   .message =
                       "must be counts of dimensions, as 6,-1: six that are minus the "
                       "state, and one that is not",
                   .subject = "--delta-actions " + text};
    mask.insert(mask.end(), static_cast<std::size_t>(std::abs(count)), count > 0);
    if (word.size() == rest.size()) break;
    rest.remove_prefix(word.size() + 1);
  }
  return mask;
}

std::vector<FramePart> frame_parts(const LeRobotSet& set) {
  std::vector<FramePart> parts;
  for (const auto& episode : set.meta.episodes) {
    const auto end = episode.first_frame + episode.length;
    if (parts.empty() || end - parts.back().begin > kPartFrames) {
      parts.push_back({.begin = episode.first_frame, .end = end});
    } else {
      parts.back().end = end;
    }
  }
  return parts;
}

std::vector<float> state_values(const LeRobotSet& set, const FramePart& part,
                                std::int64_t dimension) {
  std::vector<float> values;
  const auto at = static_cast<std::size_t>(dimension);
  for (auto frame = part.begin; frame < part.end; ++frame)
    values.push_back(set.state.of(frame)[at]);
  return values;
}

std::vector<float> action_values(const LeRobotSet& set, const FramePart& part,
                                 std::int64_t dimension, const ActionRule& rule) {
  std::vector<float> values;
  const auto at = static_cast<std::size_t>(dimension);
  const bool is_delta = at < rule.is_delta.size() && rule.is_delta[at];
  for (auto frame = part.begin; frame < part.end; ++frame) {
    if (!rule.has_delta()) {
      values.push_back(set.action.of(frame)[at]);
      continue;
    }
    const auto& episode = set.meta.episodes[episode_of(set, frame)];
    const auto end = std::min(episode.first_frame + episode.length, frame + rule.horizon);
    const auto minus = is_delta ? set.state.of(frame)[at] : 0.0F;
    for (auto step = frame; step < end; ++step) values.push_back(set.action.of(step)[at] - minus);
  }
  return values;
}

PrepareLeRobotEnd prepare_lerobot(const PrepareLeRobotOptions& options,
                                  const PrepareLeRobotHooks& hooks) {
  TJ_CHECK(options.threads >= 1 && options.threads <= kPrepareLeRobotThreadsMax, "so many threads");
  return LeRobotPreparation(options, hooks).run();
}

}  // namespace tj::trainer
