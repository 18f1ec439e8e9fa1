#include "cli/ui/feed.h"

#include <nlohmann/json.hpp>

#include "contract/names.h"
#include "operator/api/pod_json.h"
#include "operator/api/read.h"

namespace tj::ui {
namespace {

constexpr std::size_t kJobsListedMax = 1'000;  // remembered, of those that were looked at

/// The name of the template's first container.
std::string container_of(const TrainingJob& job) {
  const auto pod_template = read::parse(job.spec.pod_template_json);
  return read::string_at(main_container(pod_template), "name");
}

class ClusterFeed final : public Feed {
 public:
  ClusterFeed(boost::asio::io_context& loop, KubeApi& api, Board& board, const std::string& ns,
              std::string name)
      : loop_(loop),
        api_(api),
        board_(board),
        name_(std::move(name)),
        follower_(loop, api, board, ns) {}

  void start() override { follower_.start(); }
  std::string name() const override { return name_; }
  std::string problem() const override { return follower_.problem(); }
  void look_at(const ObjectKey& job) override { follower_.look_at(job); }
  void look_at_all() override {}
  std::unique_ptr<HttpStream> open_log(const LogQuestion& question) override {
    const TrainingJob* job = board_.find(question.job);
    if (job == nullptr) return nullptr;
    PodPlace place{.container = container_of(*job),
                   .uid = board_.pod_uid(question.job, question.rank, question.attempt),
                   .has_ended = [this, question] {
                     return board_.has_ended(question.job, question.rank, question.attempt);
                   }};
    // Another pod has the name by now.
    const bool is_of_the_past = place.uid.empty() && question.attempt < job->status.attempt;
    if (is_of_the_past) return no_log("the pod of that attempt has gone, and its log with it");
    return follow_pod(loop_, api_, question, std::move(place));
  }

 private:
  boost::asio::io_context& loop_;
  KubeApi& api_;
  Board& board_;
  std::string name_;
  Follower follower_;
};

}  // namespace

TimePoint wall_clock() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

Follower::Follower(boost::asio::io_context& loop, KubeApi& api, Board& board, const std::string& ns)
    : api_(api),
      board_(board),
      alarm_(loop, [] { return std::chrono::steady_clock::now(); }),
      jobs_(api, alarm_, {.resource = Resource::training_jobs, .ns = ns, .label_selector = {}},
            events_of(&Board::apply_jobs, Resource::training_jobs)),
      pods_(api, alarm_,
            {.resource = Resource::pods, .ns = ns, .label_selector = names::kLabelTrainingJob},
            events_of(&Board::apply_pods, Resource::pods)) {}

Follower::~Follower() {
  jobs_.stop();
  pods_.stop();
}

WatchEvents Follower::events_of(void (Board::*apply)(const WatchDelta&, TimePoint),
                                Resource resource) {
  return {.on_delta =
              [this, apply, resource](const WatchDelta& delta) {
                (board_.*apply)(delta, wall_clock());
                // A pod belongs to a job that must be known: pods are listed after the jobs.
                if (resource == Resource::training_jobs && jobs_.synced() && !pods_started_) {
                  pods_started_ = true;
                  alarm_.later([this, alive = std::weak_ptr(alive_)] {
                    if (!alive.expired()) pods_.start();
                  });
                }
                if (synced() && news_) news_();
              },
          .on_relist = [](const std::string&) {},
          .on_problem =
              [this, resource](const std::optional<Error>& problem) {
                problems_.erase(resource);
                if (problem) problems_[resource] = describe(*problem);
              }};
}

void Follower::start() { jobs_.start(); }

std::string Follower::problem() const { return problems_.empty() ? "" : problems_.begin()->second; }

void Follower::look_at(const ObjectKey& job) {
  const auto now = alarm_.now();
  const auto listed = listed_at_.find(job);
  if (listed != listed_at_.end() && now - listed->second < kEventsEvery) return;
  if (listed_at_.size() >= kJobsListedMax) listed_at_.clear();
  listed_at_[job] = now;
  list_events(job);
}

/// Those of the job and of its pods. A server can't be asked for names that begin alike.
void Follower::list_events(const ObjectKey& job) {
  Request request{.verb = Verb::list, .resource = Resource::events, .ns = job.ns};
  request.field_selector = "involvedObject.kind=TrainingJob,involvedObject.name=" + job.name;
  const auto both = std::make_shared<std::vector<nlohmann::json>>();
  const std::weak_ptr<const bool> alive = alive_;
  const auto take = [both, job](const Result<std::string>& answer) {
    if (!answer) return;
    const auto list = read::parse(*answer);
    const std::string pod_prefix = job.name + "-worker-";
    for (const auto& event : read::array_at(list, "items")) {
      const auto& about = read::object_at(event, "involvedObject");
      const std::string name = read::string_at(about, "name");
      if (name == job.name || name.starts_with(pod_prefix)) both->push_back(event);
    }
  };
  api_.send(request, [this, alive, take, both, job](const Result<std::string>& answer) {
    if (alive.expired()) return;
    take(answer);
    Request of_pods{.verb = Verb::list, .resource = Resource::events, .ns = job.ns};
    of_pods.field_selector = "involvedObject.kind=Pod";
    api_.send(of_pods, [this, alive, take, both, job](const Result<std::string>& pods) {
      if (alive.expired()) return;
      take(pods);
      board_.set_events(job, *both);
    });
  });
}

std::unique_ptr<Feed> cluster_feed(boost::asio::io_context& loop, KubeApi& api, Board& board,
                                   std::string ns, std::string name) {
  return std::make_unique<ClusterFeed>(loop, api, board, ns, std::move(name));
}

}  // namespace tj::ui
