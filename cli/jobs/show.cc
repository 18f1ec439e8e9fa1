#include "cli/jobs/show.h"

#include <unistd.h>

#include <map>
#include <utility>

#include "cli/exit.h"
#include "cli/jobs/requests.h"
#include "cli/jobs/screen.h"
#include "operator/api/json.h"

namespace tj {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

TimePoint wall_clock() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

/// A server that gives no answer is asked again for a while. Says so once for each outage.
class Outage {
 public:
  explicit Outage(std::chrono::seconds time_max) : time_max_(time_max) {}

  /// False: it is time to give up.
  bool goes_on(const Error& error) {
    if (!may_pass(error)) return false;
    if (!since_) {
      since_ = Clock::now();
      complain(error);
    }
    return Clock::now() - *since_ < time_max_;
  }
  void is_over() { since_.reset(); }

 private:
  std::chrono::seconds time_max_;
  std::optional<Clock::time_point> since_;
};

Result<std::vector<JobView>> read_views(Place& place, const ListOptions& options) {
  const auto jobs = list_jobs(place.session(), {.all_namespaces = options.all_namespaces,
                                                .label_selector = options.label_selector});
  if (!jobs) return jobs.error();
  std::vector<JobView> views;
  for (const json& job : *jobs) {
    if (auto view = view_of(place, job)) views.push_back(*std::move(view));
  }
  return views;
}

std::string nothing_text(const Place& place, const ListOptions& options) {
  if (place.is_local()) return "no local runs\n";
  return options.all_namespaces ? "no TrainingJobs\n"
                                : "no TrainingJobs in the namespace " + place.ns() + "\n";
}

/// Without a terminal: the table, then each job that has changed as a table of its own without a
/// head, as `kubectl get --watch` does it.
class ListNews {
 public:
  std::string of(const std::vector<JobView>& views, const ListStyle& style) {
    std::vector<JobView> changed;
    for (const JobView& view : views) {
      const std::string now = view.job.meta.resource_version + phase_text(view);
      std::string& last = last_[view.job.meta.key()];
      if (last != now) changed.push_back(view);
      last = now;
    }
    if (changed.empty()) return "";
    const std::string text = list_text(changed, style);
    return std::exchange(is_first_, false) ? text : text.substr(text.find('\n') + 1);
  }

 private:
  std::map<ObjectKey, std::string> last_;
  bool is_first_ = true;
};

int watch_list(Place& place, const ListOptions& options) {
  const ListStyle style{.with_namespace = options.all_namespaces, .wide = options.output == "wide"};
  Screen screen(STDOUT_FILENO);
  ListNews news;
  Outage outage(options.pace.outage_max);
  while (true) {
    const auto views = read_views(place, options);
    if (!views && !outage.goes_on(views.error())) return fail(views.error());
    if (views) {
      outage.is_over();
      if (screen.is_live()) {
        screen.draw(views->empty() ? nothing_text(place, options) : list_text(*views, style));
      } else {
        print(news.of(*views, style));
      }
    }
    pause(options.pace.every);
    if (const auto read = place.refresh(); !read) return fail(read.error());
  }
}

int exit_code_of(const JobView& view) {
  return view.job.status.phase == Phase::succeeded ? tj_exit::kSucceeded : tj_exit::kFailed;
}

int watch_status(Place& place, const std::string& name, const StatusOptions& options) {
  Screen screen(STDOUT_FILENO);
  Outage outage(options.pace.outage_max);
  std::string last_line;
  while (true) {
    const auto view = read_view(place, name);
    if (!view && !outage.goes_on(view.error())) return fail(view.error());
    if (view) {
      outage.is_over();
      const std::string line = summary_line(*view);
      if (screen.is_live()) {
        screen.draw(status_text(*view));
      } else if (line != last_line) {
        print(format_time(view->now) + " " + line + "\n");
      }
      last_line = line;
      if (is_over(*view)) return exit_code_of(*view);
    }
    pause(options.pace.every);
    if (const auto read = place.refresh(); !read) return fail(read.error());
  }
}

}  // namespace

bool may_pass(const Error& error) {
  return error.code == Code::unavailable || error.code == Code::timeout;
}

Result<JobView> view_of(const Place& place, const json& object) {
  auto job = job_from_json(object);
  if (!job) return job.error();
  const std::string name = job->meta.name;
  return JobView{.job = *std::move(job),
                 .is_local = place.is_local(),
                 .has_lost_its_process = place.has_lost_its_process(name),
                 .now = wall_clock()};
}

Result<JobView> read_view(Place& place, const std::string& name) {
  const auto job = get_job(place.session(), name);
  if (!job) return job.error();
  auto view = view_of(place, *job);
  if (!view) return view;
  const auto pods = pods_of(place.session(), *job);
  if (!pods) return pods.error().code == Code::forbidden ? view : pods.error();
  for (const json& object : *pods) {
    if (auto pod = trim_pod(object)) view->pods.push_back(*std::move(pod));
  }
  return view;
}

int list(Place& place, const ListOptions& options) {
  const bool is_for_programs = !options.output.empty() && options.output != "wide";
  if (options.watch && is_for_programs) {
    return fail({Code::invalid, "can't be had with --watch", "-o " + options.output, {}});
  }
  if (options.watch) return watch_list(place, options);
  if (is_for_programs) {
    const auto jobs = list_jobs(place.session(), {.all_namespaces = options.all_namespaces,
                                                  .label_selector = options.label_selector});
    if (!jobs) return fail(jobs.error());
    print(formatted(*jobs, options.output));
    return tj_exit::kSucceeded;
  }
  const auto views = read_views(place, options);
  if (!views) return fail(views.error());
  const ListStyle style{.with_namespace = options.all_namespaces, .wide = options.output == "wide"};
  print(views->empty() ? nothing_text(place, options) : list_text(*views, style));
  return tj_exit::kSucceeded;
}

int show_status(Place& place, const StatusOptions& options) {
  const auto name = job_name_of(options.job);
  if (!name) return fail(name.error());
  if (!options.output.empty()) {
    if (options.watch)
      return fail({Code::invalid, "can't be had with --watch", "-o " + options.output, {}});
    const auto job = get_job(place.session(), *name);
    if (!job) return fail(job.error());
    print(formatted(*job, options.output));
    return tj_exit::kSucceeded;
  }
  if (options.watch) return watch_status(place, *name, options);
  const auto view = read_view(place, *name);
  if (!view) return fail(view.error());
  print(status_text(*view));
  return tj_exit::kSucceeded;
}

int show_top(Place& place, const std::string& job) {
  const auto name = job_name_of(job);
  if (!name) return fail(name.error());
  const auto view = read_view(place, *name);
  if (!view) return fail(view.error());
  print(top_text(*view));
  return tj_exit::kSucceeded;
}

int show_events(Place& place, const std::string& job, const Output& output) {
  const auto name = job_name_of(job);
  if (!name) return fail(name.error());
  const auto object = get_job(place.session(), *name);
  if (!object) return fail(object.error());
  const auto events = events_of(place.session(), *object);
  if (!events) return fail(events.error());
  print(output.empty() ? events_text(*events, wall_clock()) : formatted(*events, output));
  return tj_exit::kSucceeded;
}

}  // namespace tj
