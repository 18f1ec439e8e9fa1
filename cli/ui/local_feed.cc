// Local runs as a source of the page: the objects that each `tj run` keeps in a file go into an API
// server in memory whenever they change, and the page follows that as it follows a cluster. Logs,
// and what the trainer wrote, are read from the run's folder.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <nlohmann/json.hpp>

#include "cli/local/run_folder.h"
#include "cli/ui/feed.h"
#include "contract/launch_env.h"
#include "contract/names.h"
#include "operator/api/pod_json.h"
#include "operator/api/read.h"

namespace tj::ui {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::chrono::milliseconds kLookAgain{500};
constexpr double kReadFilesEvery = 1;  // seconds
constexpr int kRankMax = 100'000;
constexpr std::string_view kOutFlag = "--out";
/// Of the uids that this store would give: none that a `tj run` has given.
constexpr const char* kUidPrefix = "ffffffff-ffff-4fff-bfff-";

double unix_seconds(TimePoint time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

/// When the file was made, where the file system knows.
std::optional<TimePoint> birth_of(const fs::path& file) {
  struct statx facts {};
  const int failed = statx(AT_FDCWD, file.c_str(), 0, STATX_BTIME, &facts);
  if (failed != 0 || (facts.stx_mask & STATX_BTIME) == 0) return {};
  return TimePoint(std::chrono::seconds(facts.stx_btime.tv_sec) +
                   std::chrono::milliseconds(facts.stx_btime.tv_nsec / 1'000'000));
}

std::optional<TimePoint> last_write_of(const fs::path& file) {
  struct stat facts {};
  if (stat(file.c_str(), &facts) != 0) return {};
  return TimePoint(std::chrono::seconds(facts.st_mtim.tv_sec) +
                   std::chrono::milliseconds(facts.st_mtim.tv_nsec / 1'000'000));
}

/// The value of --out in the worker's command; "" where there is none.
std::string out_of(const json& container) {
  std::string out;
  bool is_value = false;
  for (const char* list : {"command", "args"}) {
    for (const json& word : read::array_at(container, list)) {
      const std::string text = read::text_of(word);
      if (std::exchange(is_value, text == kOutFlag)) out = text;
      if (text.starts_with(std::string(kOutFlag) + "=")) out = text.substr(kOutFlag.size() + 1);
    }
  }
  return out;
}

/// Where the job's --out is on this machine, as far as its manifest says it.
fs::path output_folder(const TrainingJob& job) {
  const json pod_template = read::parse(job.spec.pod_template_json);
  const json& container = main_container(pod_template);
  const std::string out = out_of(container);
  if (out.empty() || out.front() != '/') return {};
  for (const json& mount : read::array_at(container, "volumeMounts")) {
    const std::string at = read::string_at(mount, "mountPath");
    if (at.empty() || !out.starts_with(at)) continue;
    for (const json& volume : read::array_at(read::object_at(pod_template, "spec"), "volumes")) {
      if (read::string_at(volume, "name") != read::string_at(mount, "name")) continue;
      const std::string host = read::string_at(read::object_at(volume, "hostPath"), "path");
      return host.empty() ? fs::path() : fs::path(host + out.substr(at.size()));
    }
  }
  return out;
}

/// A worker's name in a log's name; no path may come of it.
std::optional<WorkerLife> life_of_log(const fs::path& file, const std::string& job) {
  const std::string name = file.filename();
  const std::string prefix = job + "-worker-";
  if (!name.starts_with(prefix) || !name.ends_with(".log")) return {};
  std::string rank = name.substr(prefix.size(), name.size() - prefix.size() - 4);
  int attempt = 0;
  constexpr std::string_view kAttempt = ".attempt-";
  if (const auto dot = rank.find(kAttempt); dot != std::string::npos) {
    const auto number = parse_int("", rank.substr(dot + kAttempt.size()), 0, kRankMax);
    if (!number) return {};
    attempt = *number;
    rank.resize(dot);
  }
  const auto index = parse_int("", rank, 0, kRankMax);
  if (!index) return {};
  return WorkerLife{.rank = *index,
                    .attempt = attempt,
                    .pod = names::worker_pod(job, *index),
                    .node = "",
                    .state = "Gone",
                    .created = birth_of(file),
                    .started = birth_of(file),
                    .ended = last_write_of(file)};
}

/// Jobs come first: a pod without its owner would be collected. Returns the jobs that are new.
std::vector<ObjectKey> restore(ObjectStore& store, const RunObjects& objects) {
  std::vector<ObjectKey> jobs;
  const auto put = [&](Resource resource, const std::vector<json>& all) {
    for (const json& object : all) {
      const std::string uid = read::string_at(read::object_at(object, "metadata"), "uid");
      if (uid.starts_with(kUidPrefix)) continue;
      const bool is_new = store.restore(resource, object).ok();
      if (is_new && resource == Resource::training_jobs) jobs.push_back(key_of(object));
    }
  };
  put(Resource::training_jobs, objects.jobs);
  put(Resource::pods, objects.pods);
  put(Resource::events, objects.events);
  return jobs;
}

class LocalFeed final : public Feed {
 public:
  LocalFeed(boost::asio::io_context& loop, Board& board, std::vector<fs::path> folders)
      : loop_(loop), board_(board), timer_(loop), folders_(std::move(folders)) {}

  void start() override {
    look_for_changes();
    timer_.expires_after(kLookAgain);
    timer_.async_wait([this](auto failure) {
      if (!failure) start();
    });
  }
  std::string name() const override {
    std::string text = "local runs";
    for (const fs::path& folder : folders_) text += " " + folder.string();
    return text;
  }
  std::string problem() const override { return problem_; }
  void look_at(const ObjectKey& job) override {
    if (follower_) follower_->look_at(job);
    read_files(job);
  }
  void look_at_all() override {
    for (const ObjectKey& job : board_.jobs()) read_files(job);
  }
  std::unique_ptr<HttpStream> open_log(const LogQuestion& question) override {
    const auto folder = folder_of_.find(question.job);
    if (folder == folder_of_.end()) return nullptr;
    const std::string pod = names::worker_pod(question.job.name, question.rank);
    if (pod.find('/') != std::string::npos) return nullptr;
    return follow_file(loop_, run_log_file(folder->second, pod, question.attempt), question,
                       [this, question] {
                         return board_.has_ended(question.job, question.rank, question.attempt);
                       });
  }

 private:
  struct Seen {
    fs::path folder;
    bool is_alive = true;
    std::optional<TimePoint> written = {};  // its objects
    bool operator==(const Seen&) const = default;
  };
  struct Files {
    std::string job_uid;
    RunFiles files;
    double read_at = 0;
  };

  /// A folder that was given, and that the registry does not know, is taken to live.
  std::vector<Seen> runs() const {
    std::vector<Seen> runs;
    const auto known = list_runs();
    for (const fs::path& folder : folders_) {
      const auto run = std::ranges::find(known, fs::absolute(folder), &RunEntry::folder);
      runs.push_back({.folder = folder, .is_alive = run == known.end() || run->is_alive});
    }
    if (!folders_.empty()) return runs;
    for (const RunEntry& run : known)
      runs.push_back({.folder = run.folder, .is_alive = run.is_alive});
    return runs;
  }

  void look_for_changes() {
    std::vector<Seen> found = runs();
    for (Seen& run : found) run.written = last_write_of(run.folder / kObjectsFile);
    if (found == seen_ && api_) return;
    seen_ = std::move(found);
    load();
  }

  /// Of runs with one job's name, the first has it: one that lives, else the newest.
  void load() {
    follower_.reset();
    folder_of_.clear();
    problem_.clear();
    api_ = std::make_unique<MemoryApi>(
        [this](std::function<void()> work) { boost::asio::post(loop_, std::move(work)); },
        wall_clock, ObjectStoreOptions{.uid_prefix = kUidPrefix});
    interrupted_.clear();
    for (const Seen& run : seen_) {
      const auto objects = read_run_objects(run.folder);
      if (!objects) problem_ = describe(objects.error());
      if (!objects) continue;
      for (const ObjectKey& job : restore(api_->objects(), *objects)) {
        folder_of_[job] = run.folder;
        if (!run.is_alive) interrupted_[job] = run.written.value_or(wall_clock());
      }
    }
    follower_ = std::make_unique<Follower>(loop_, *api_, board_, "");
    follower_->on_news([this] {
      add_past_lives();
      for (const auto& [job, since] : interrupted_) board_.interrupt(job, since);
    });
    follower_->start();
  }

  void add_past_lives() {
    for (const auto& [job, folder] : folder_of_) {
      const TrainingJob* known = board_.find(job);
      if (known == nullptr || known->status.attempt == 0) continue;
      std::error_code failure;
      for (fs::directory_iterator entry(folder, failure);
           !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
        auto life = life_of_log(entry->path(), job.name);
        const bool is_past = life && life->attempt < known->status.attempt && life->ended &&
                             life->ended >= known->meta.creation_time;
        if (is_past) board_.add_past_life(job, *std::move(life));
      }
    }
  }

  void read_files(const ObjectKey& job) {
    const TrainingJob* known = board_.find(job);
    const auto folder = folder_of_.find(job);
    if (known == nullptr || folder == folder_of_.end()) return;
    auto files = files_.find(job);
    if (files == files_.end() || files->second.job_uid != known->meta.uid) {
      const double since = unix_seconds(known->meta.creation_time.value_or(TimePoint{}));
      RunFiles fresh({folder->second / "volumes", output_folder(*known)}, since);
      files = files_.insert_or_assign(job, Files{known->meta.uid, std::move(fresh)}).first;
    }
    const double now = unix_seconds(wall_clock());
    if (now - files->second.read_at < kReadFilesEvery) return;
    files->second.read_at = now;
    files->second.files.read_news(now);
    board_.set_files(job, files->second.files);
  }

  boost::asio::io_context& loop_;
  Board& board_;
  boost::asio::steady_timer timer_;
  std::vector<fs::path> folders_;
  std::vector<Seen> seen_;
  std::map<ObjectKey, fs::path> folder_of_;
  std::map<ObjectKey, TimePoint> interrupted_;  // since when
  std::map<ObjectKey, Files> files_;
  std::string problem_;
  std::unique_ptr<MemoryApi> api_;
  std::unique_ptr<Follower> follower_;
};

}  // namespace

std::unique_ptr<Feed> local_feed(boost::asio::io_context& loop, Board& board,
                                 std::vector<fs::path> folders) {
  return std::make_unique<LocalFeed>(loop, board, std::move(folders));
}

}  // namespace tj::ui
