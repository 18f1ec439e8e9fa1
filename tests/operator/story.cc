#include "tests/operator/story.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "operator/api/json.h"
#include "operator/plan/manifest.h"

namespace tj {
namespace {

constexpr int kRoundsMax = 50;  // a job that needs more never settles

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// "code=3" -> "3".
std::string option(const std::vector<std::string>& words, const std::string& name,
                   const std::string& fallback) {
  for (const std::string& word : words) {
    if (word.rfind(name + "=", 0) == 0) return word.substr(name.size() + 1);
  }
  return fallback;
}

std::string joined_from(const std::vector<std::string>& words, std::size_t first) {
  std::string text;
  for (std::size_t i = first; i < words.size(); ++i) text += (text.empty() ? "" : " ") + words[i];
  return text;
}

void start(Pod& pod) {
  pod.phase = PodPhase::running;
  pod.ready = true;
  if (pod.node.empty()) pod.node = "node-" + std::to_string(pod.worker_index);
  pod.waiting_reason.clear();
  pod.waiting_message.clear();
}

bool is_policy(const Action& action) {
  return std::holds_alternative<PutNetworkPolicy>(action) ||
         std::holds_alternative<DeleteNetworkPolicy>(action);
}

TimePoint at_second(int second) { return TimePoint{std::chrono::seconds{1'800'000'000 + second}}; }

}  // namespace

std::string Story::run(const std::string& step) {
  const auto words = words_of(step);
  if (words.empty()) throw std::invalid_argument("an empty step");
  change(words[0], words);
  return world_.job.meta.name.empty() ? "" : settle();
}

Pod& Story::pod(const std::string& rank) {
  for (Pod& pod : world_.pods) {
    if (pod.worker_index == std::stoi(rank) && pod.meta.controller_uid == world_.job.meta.uid)
      return pod;
  }
  throw std::invalid_argument("no worker " + rank);
}

bool Story::change_pods(const std::string& verb, const Words& words) {
  if (verb == "start") {
    for (Pod& each : world_.pods) {
      const std::string rank = std::to_string(each.worker_index);
      const bool named = std::find(words.begin() + 1, words.end(), rank) != words.end();
      if (words.at(1) == "all" || named) start(each);
    }
  } else if (verb == "bind") {
    pod(words.at(1)).node = words.at(2);
  } else if (verb == "waiting") {
    Pod& waiting = pod(words.at(1));
    waiting.waiting_reason = words.at(2);
    waiting.waiting_message = joined_from(words, 3);
    waiting.waiting_since = world_.now;
  } else if (verb == "news") {
    world_.pod_news = PodNews{pod(words.at(1)).meta.uid, words.at(2), joined_from(words, 3)};
  } else if (verb == "vanish") {
    const std::string uid = pod(words.at(1)).meta.uid;
    std::erase_if(world_.pods, [&](const Pod& each) { return each.meta.uid == uid; });
  } else if (verb == "gone") {
    std::erase_if(world_.pods, [this](const Pod& each) {
      return each.meta.deletion_time.has_value() && !is_silent(each.node);
    });
  } else if (verb == "leave-behind") {
    for (Pod& each : world_.pods) each.attempt = -1;
  } else if (verb == "run-ahead") {
    for (Pod& each : world_.pods) ++each.attempt;
  } else {
    return false;
  }
  return true;
}

bool Story::end_pods(const std::string& verb, const Words& words) {
  const auto end = [&](Pod& ended, const std::string& fallback_reason) {
    const int code = std::stoi(option(words, "code", "0"));
    ended.ready = false;
    ended.exit = ContainerExit{.exit_code = code,
                               .reason = option(words, "reason", fallback_reason),
                               .message = option(words, "message", ""),
                               .finished_at = at_second(std::stoi(option(words, "at", "10"))),
                               .started_at = {}};
    const std::string started = option(words, "started", "");
    if (!started.empty()) ended.exit->started_at = at_second(std::stoi(started));
    if (option(words, "pod", "") == "running") return;
    ended.phase = code == 0 ? PodPhase::succeeded : PodPhase::failed;
  };
  if (verb == "exit") {
    end(pod(words.at(1)), option(words, "code", "0") == "0" ? "Completed" : "Error");
  } else if (verb == "evict") {
    Pod& evicted = pod(words.at(1));
    evicted.phase = PodPhase::failed;
    evicted.reason = "Evicted";
    evicted.message = "the node was low on memory";
  } else if (verb == "reject") {
    Pod& rejected = pod(words.at(1));
    rejected.phase = PodPhase::failed;
    rejected.reason = words.at(2);
  } else if (verb == "disrupt") {
    Pod& disrupted = pod(words.at(1));
    disrupted.meta.deletion_time = world_.now;
    disrupted.conditions.push_back({"DisruptionTarget", words.at(2), "somebody needs the node"});
    end(disrupted, "Error");
  } else {
    return false;
  }
  return true;
}

bool Story::change_progress(const std::string& verb, const Words& words) {
  if (verb == "unreadable") {
    world_.progress->unreadable_for = std::chrono::seconds{std::stoi(words.at(1))};
    return true;
  }
  if (verb != "read") return false;
  Progress document{.attempt = world_.job.status.attempt,
                    .phase = option(words, "phase", "step"),
                    .step = std::stoll(option(words, "step", "0")),
                    .steps = std::stoll(option(words, "of", "0")),
                    .loss = {},
                    .tokens_per_second = {},
                    .mfu = {},
                    .eta_seconds = {},
                    .last_checkpoint = {},
                    .heartbeat_age_seconds = std::stod(option(words, "age", "0")),
                    .stalled = {}};
  if (const auto saved = option(words, "saved", ""); !saved.empty()) {
    document.last_checkpoint = SavedStep{std::stoll(saved), "/out/step-" + saved};
  }
  if (const auto rank = option(words, "stalled", ""); !rank.empty()) {
    document.stalled.push_back(
        {std::stoi(rank), "n", document.phase, std::stod(option(words, "for", "0"))});
  }
  world_.progress = ProgressNews{pod("0").meta.uid, std::move(document), {}};
  return true;
}

bool Story::is_silent(const std::string& node) const {
  return std::any_of(world_.nodes.begin(), world_.nodes.end(), [&](const Node& each) {
    return each.meta.name == node && each.silent_since.has_value();
  });
}

bool Story::change_nodes(const std::string& verb, const Words& words) {
  if (verb != "silent" && verb != "heard") return false;
  std::erase_if(world_.nodes, [&](const Node& each) { return each.meta.name == words.at(1); });
  Node node{.meta = {.name = words.at(1)}, .silent_since = {}};
  if (verb == "silent") node.silent_since = world_.now;
  world_.nodes.push_back(std::move(node));
  return true;
}

void Story::add_rule(const Words& words) {
  FailureRule rule{.action = parse_action(words.at(1)).value(),
                   .exit_codes = {},
                   .signals = {},
                   .conditions = {},
                   .causes = {}};
  if (const auto code = option(words, "code", ""); !code.empty()) {
    rule.exit_codes.push_back(std::stoi(code));
  }
  if (const auto signal = option(words, "signal", ""); !signal.empty()) {
    rule.signals.push_back(std::stoi(signal));
  }
  if (const auto condition = option(words, "condition", ""); !condition.empty()) {
    rule.conditions.push_back(condition);
  }
  if (const auto cause = option(words, "cause", ""); !cause.empty()) {
    rule.causes.push_back(parse_cause(cause).value());
  }
  world_.job.spec.failure.rules.push_back(std::move(rule));
}

/// The settings of `job` and `set`: those that are not named stay as they are.
void Story::apply_settings(const Words& words) {
  JobSpec& spec = world_.job.spec;
  const auto on = [&](const char* name, const auto& use) {
    const std::string text = option(words, name, "");
    if (!text.empty()) use(text);
  };
  const auto number = [&](const char* name, int& value) {
    on(name, [&](const std::string& text) { value = std::stoi(text); });
  };
  const auto seconds = [&](const char* name, auto& value) {
    on(name, [&](const std::string& text) { value = std::chrono::seconds{std::stoi(text)}; });
  };
  number("workers", spec.worker_count);
  number("max-restarts", spec.run.max_restarts);
  seconds("active-deadline", spec.run.active_deadline);
  seconds("start-deadline", spec.run.start_deadline);
  seconds("ttl", spec.run.ttl_after_finished);
  seconds("budget-reset", spec.run.restart_budget_reset);
  seconds("heartbeat", spec.run.heartbeat_timeout);
  on("reset-on-progress",
     [&](const std::string& text) { spec.run.resets_budget_on_progress = text == "true"; });
  seconds("backoff", spec.run.restart_backoff);
  seconds("tolerance", spec.node_loss.tolerance);
  seconds("force-delete", spec.node_loss.force_delete);
  seconds("exclude", spec.node_loss.exclude);
  on("template", [&](const std::string& text) { spec.pod_template_json = text; });
  on("suspend", [&](const std::string& text) { spec.run.suspend = text == "true"; });
  on("managed-by", [&](const std::string& text) { spec.run.managed_by = text; });
  on("network-policy",
     [&](const std::string& text) { spec.network.network_policy = text == "true"; });
  on("progress-port", [&](const std::string& text) { world_.job.progress_port = std::stoi(text); });
  on("invalid", [&](const std::string& field) {
    world_.job.spec_error = field + ": is wrong";
    if (field == "none") world_.job.spec_error.reset();
  });
  on("success", [&](const std::string&) { spec.success = SuccessPolicy::worker0; });
  on("clean", [&](const std::string& text) {
    spec.run.clean_pods = text == "All" ? CleanPods::all : CleanPods::none;
  });
}

void Story::apply_job(const Words& words) {
  const bool another = !world_.job.meta.name.empty() && world_.job.meta.name != words.at(1);
  if (another) world_ = Observed{};
  world_.job = TrainingJob{};
  world_.job.meta = {.name = words.at(1),
                     .ns = "default",
                     .uid = option(words, "uid", "uid-1"),
                     .resource_version = "1",
                     .generation = 1};
  world_.job.spec.run.restart_backoff = std::chrono::seconds{0};  // the stories about it say more
  apply_settings(words);
  const std::string annotation = option(words, "annotation", "");
  if (!annotation.empty()) world_.job.annotation_error = annotation + ": is wrong";
  world_.now = at_second(0);
}

const std::map<std::string, Refusal> kRefusals = {{"refuse", Refusal::denied},
                                                  {"refuse-for-good", Refusal::invalid},
                                                  {"break", Refusal::internal}};

void Story::change(const std::string& verb, const Words& words) {
  if (change_pods(verb, words) || end_pods(verb, words) || change_nodes(verb, words)) return;
  if (change_progress(verb, words)) return;
  if (verb == "job") {
    apply_job(words);
  } else if (verb == "set") {
    apply_settings(words);
    ++world_.job.meta.generation;
  } else if (verb == "upgrade") {
    world_.job.status.template_hash = "5f2c";
    apply_settings(words);
  } else if (verb == "rule") {
    add_rule(words);
  } else if (verb == "foreign" && words.at(1) == "service") {
    const std::string& name = words.at(2);
    world_.service = Service{.meta = {.name = name, .controller_uid = "uid-0"}, .job_name = name};
  } else if (verb == "foreign") {
    create_pod({.worker_index = std::stoi(words.at(1)), .attempt = 0});
    world_.pods.back().meta.controller_uid = "uid-0";
  } else if (kRefusals.contains(verb)) {
    refusal_ = joined_from(words, 1);
    refusal_kind_ = kRefusals.at(verb);
  } else if (verb == "accept") {
    refusal_.reset();
  } else if (verb == "delete") {
    world_.job.meta.deletion_time = world_.now;
  } else if (verb == "now") {
    world_.now = at_second(std::stoi(words.at(1)));
  } else {
    throw std::invalid_argument("unknown step: " + verb);
  }
}

std::string Story::settle() {
  std::string text;
  for (int round = 0; round < kRoundsMax; ++round) {
    const Plan next = plan(world_);
    const std::string said = to_text(next, world_.job);
    world_.awaits_cause_since = next.awaits_cause_since;
    const bool waits = next.actions.empty() && next.status == world_.job.status;
    if (waits) return text + (next.requeue_after || text.empty() ? said : "");
    text += said;
    const Observed before = world_;
    carry_out(next);
    if (world_.job.meta.name.empty()) return text;
    const bool refused = world_.pods == before.pods && world_.job == before.job &&
                         world_.service.has_value() == before.service.has_value() &&
                         world_.network_policy_hash == before.network_policy_hash;
    if (refused && world_.create_error == before.create_error) return text;
  }
  throw std::runtime_error("the job never settles:\n" + text);
}

void Story::carry_out(const Plan& next) {
  // As the loop does: what the actions rest on is written before.
  if (crashes_ && next.must_persist_first && !(next.status == world_.job.status)) {
    world_.job.status = next.status;
    return;
  }
  for (const Action& action : next.actions) {
    // A policy that is there already as it must be is no write.
    const bool is_there =
        is_policy(action) && world_.network_policy_hash == network_policy_hash(world_.job);
    if (is_there) continue;
    apply(action, next.status);
    const bool took_effect = !world_.create_error;
    if (crashes_ && took_effect) return;
  }
  if (!world_.job.meta.name.empty()) world_.job.status = next.status;
}

void Story::apply(const Action& action, const JobStatus& record) {
  if (const auto* remove = std::get_if<DeletePod>(&action)) {
    const auto is_it = [&](const Pod& each) { return each.meta.uid == remove->uid; };
    if (remove->force) {
      std::erase_if(world_.pods, is_it);
      return;
    }
    const auto found = std::find_if(world_.pods.begin(), world_.pods.end(), is_it);
    if (found != world_.pods.end()) found->meta.deletion_time = world_.now;
    return;
  }
  if (std::holds_alternative<DeleteJob>(action)) {
    world_.job = TrainingJob{};
    world_.pods.clear();
    return;
  }
  if (is_policy(action)) {
    world_.network_policy_hash = network_policy_hash(world_.job);
    return;
  }
  world_.create_error = refusal_;
  world_.refusal = refusal_kind_;
  if (refusal_) return;
  if (const auto* create = std::get_if<CreatePod>(&action)) return create_pod(*create);
  TrainingJob recorded = world_.job;
  recorded.status = record;
  nlohmann::json object = make_service(recorded);
  object["metadata"]["creationTimestamp"] = format_time(world_.now);
  world_.service = trim_service(object).value();
}

void Story::create_pod(const CreatePod& action) {
  Pod created;
  created.meta.name = names::worker_pod(world_.job.meta.name, action.worker_index);
  created.meta.uid = "pod-" + std::to_string(next_uid_++);
  created.meta.controller_uid = world_.job.meta.uid;
  created.meta.creation_time = world_.now;
  created.job_name = world_.job.meta.name;
  created.worker_index = action.worker_index;
  created.attempt = action.attempt;
  for (const Pod& each : world_.pods) {
    if (each.meta.name == created.meta.name)
      throw std::runtime_error("two pods of the name " + created.meta.name);
  }
  world_.pods.push_back(std::move(created));
}

std::vector<StoryBlock> parse_story(const std::string& text) {
  std::vector<StoryBlock> blocks;
  StoryBlock block;
  bool in_expected = false;
  const auto finish = [&] {
    if (!block.steps.empty()) blocks.push_back(std::exchange(block, {}));
    in_expected = false;
  };
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.empty())
      finish();
    else if (in_expected)
      block.expected += line + "\n";
    else if (line == "----")
      in_expected = true;
    else if (line[0] == '#')
      block.comments.push_back(line);
    else
      block.steps.push_back(line);
  }
  finish();
  return blocks;
}

std::string to_text(const std::vector<StoryBlock>& blocks) {
  std::string text;
  for (const StoryBlock& block : blocks) {
    if (!text.empty()) text += "\n";
    for (const std::string& line : block.comments) text += line + "\n";
    for (const std::string& line : block.steps) text += line + "\n";
    text += "----\n" + block.expected;
  }
  return text;
}

}  // namespace tj
