#include "tests/sim/world.h"

#include <algorithm>

namespace tj::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kEventPercent = 15;                     // of the steps while something is under way
constexpr std::chrono::milliseconds kTurnTime = 1ms;  // nothing is done in no time
constexpr std::chrono::milliseconds kSomeTimeMax = 3s;
constexpr std::chrono::milliseconds kMuchTimeMax = 5min;
constexpr std::chrono::milliseconds kRestAfter = 15min;  // without a change of the store
constexpr std::chrono::milliseconds kDrainMax = 4h;      // to come to rest
constexpr std::chrono::milliseconds kSecondLookMax = 10min;
constexpr long kDrainStepsMax = 50'000;

}  // namespace

World::World(const WorldOptions& options)
    : trace_(options.is_traced),
      dice_(options.seed),
      weather_(Weather::draw(dice_)),
      bug_(options.bug),
      life_steps_(options.life_steps) {
  ObjectStoreOptions store_options{.list_objects_max = dice_.between(2, 40)};
  api_ = std::make_unique<MemoryApi>(
      [this](std::function<void()> work) { server_turns_.push_back(std::move(work)); },
      [this] { return wall_time(now_); }, store_options);
  api_->set_request_fault([this](const Request&) -> std::optional<RequestFault> {
    server_actor_ = Actor::operators;  // what changes in this turn was asked for by an operator
    return std::nullopt;
  });
  cluster_ = std::make_unique<Cluster>(
      Cluster::Parts{api_->objects(), invariants_.mirror(), dice_, trace_, now_});
  user_ = std::make_unique<User>(User::Parts{api_->objects(), invariants_.mirror(), dice_, trace_});
  ends_well_ = dice_.percent(50);
  operators_.resize(2);
  chances_ = {{60, &World::move_a_pod},
              {10, &World::pass_some_time},
              {1, &World::pass_much_time},
              {6, &World::create_job},
              {1, &World::end_watches},
              {weather_.broken_watches, &World::break_watches},
              {weather_.compactions, &World::compact},
              {weather_.crashes, &World::crash_operator},
              {weather_.freezes, &World::freeze_operator},
              {weather_.second_operator, &World::change_second_operator},
              {weather_.node_losses, &World::change_a_node},
              {weather_.evictions, &World::evict_a_pod},
              {weather_.pod_deletions, &World::delete_pod},
              {weather_.job_deletions, &World::delete_job},
              {weather_.spec_changes, &World::change_job},
              {weather_.foreign_pods, &World::place_foreign_pod}};
  for (const Chance& chance : chances_) weights_.push_back(chance.weight);
}

World::~World() { operators_.clear(); }

void World::run() {
  start_operator(0);
  while (is_well() && steps_ < life_steps_) step();
  if (is_well()) drain();
}

void World::count_step(Actor actor) {
  ++steps_;
  invariants_.look(api_->objects(), actor);
  for (const auto& process : operators_) {
    if (!process) continue;
    const std::string& late = process->link().late_creation();
    if (!late.empty()) invariants_.report("no creation after the job's end is known: " + late);
    if (process->is_spinning()) invariants_.report("an operator rests after each message");
  }
  trace_.set_place(steps_,
                   std::chrono::duration_cast<std::chrono::milliseconds>(now_.time_since_epoch()));
}

void World::step() {
  if (dice_.percent(kEventPercent)) return draw_event();
  if (!turn() && !(dice_.percent(30) && hurry_on())) draw_event();
}

/// One turn of somebody who has something to do; false: everybody waits.
bool World::turn() {
  std::vector<Process*> ready;
  for (const auto& process : operators_) {
    if (process && process->is_ready()) ready.push_back(process.get());
  }
  const std::size_t choices = ready.size() + (server_turns_.empty() ? 0 : 1);
  if (choices == 0) return false;
  now_ += kTurnTime;
  const auto choice = static_cast<std::size_t>(dice_.below(choices));
  if (choice == ready.size()) {
    serve();
  } else {
    ready[choice]->turn();
    count_step(Actor::world);
  }
  return true;
}

void World::serve() {
  const auto work = std::move(server_turns_.front());
  server_turns_.pop_front();
  server_actor_ = Actor::collector;
  work();
  count_step(server_actor_);
}

void World::draw_event() {
  const Chance& chance = chances_[dice_.weighted(weights_)];
  if ((this->*chance.event)()) count_step(Actor::world);
}

std::optional<SteadyTime> World::next() const {
  std::optional<SteadyTime> first;
  for (const auto& process : operators_) {
    const auto time = process ? process->next() : std::nullopt;
    if (time) first = std::min(first.value_or(*time), *time);
  }
  return first;
}

/// To the moment when somebody has something to do again.
bool World::hurry_on() {
  const auto time = next();
  if (!time) return false;
  now_ = std::max(now_, *time);
  count_step(Actor::world);
  return true;
}

void World::pass_time(std::chrono::milliseconds duration) {
  now_ += duration;
  trace_.note("clock: " + std::to_string(duration.count()) + " ms pass");
}

bool World::pass_some_time() {
  pass_time(dice_.up_to(kSomeTimeMax));
  return true;
}

bool World::pass_much_time() {
  pass_time(dice_.up_to(kMuchTimeMax));
  return true;
}

bool World::break_watches() {
  trace_.note("watches break");
  for (const auto& process : operators_) {
    if (process) process->link().break_streams();
  }
  return true;
}

bool World::end_watches() {
  trace_.note("server: ends its watches");
  api_->end_watches();
  return true;
}

bool World::compact() {
  trace_.note("server: forgets its history");
  api_->objects().compact();
  return true;
}

void World::start_operator(std::size_t index) {
  const std::string name = "op" + std::to_string(operators_started_++);
  const auto skew =
      std::chrono::seconds{dice_.between(-weather_.skew_seconds_max, weather_.skew_seconds_max)};
  trace_.note("operator " + name + " starts, its clock off by " + std::to_string(skew.count()) +
              " s");
  const LinkWorld world{*api_, dice_, weather_, trace_, now_};
  operators_[index] = std::make_unique<Process>(world, name, skew, bug_);
}

bool World::crash_operator() {
  const auto index = static_cast<std::size_t>(dice_.below(operators_.size()));
  if (!operators_[index]) return false;
  trace_.note("operator " + operators_[index]->name() + " dies");
  operators_[index].reset();
  if (dice_.percent(30)) now_ += dice_.up_to(1min);
  start_operator(index);
  return true;
}

bool World::freeze_operator() {
  const auto& process = operators_[static_cast<std::size_t>(dice_.below(operators_.size()))];
  if (!process || process->is_frozen()) return false;
  const auto duration = dice_.up_to(dice_.percent(50) ? 1s : 60s);
  trace_.note("operator " + process->name() + " stands still for " +
              std::to_string(duration.count()) + " ms");
  process->freeze_until(now_ + duration);
  return true;
}

bool World::change_second_operator() {
  if (operators_[1]) {
    trace_.note("operator " + operators_[1]->name() + " dies");
    operators_[1].reset();
  } else {
    start_operator(1);
  }
  return true;
}

long World::writes_sent() const {
  long count = 0;
  for (const auto& process : operators_) count += process ? process->link().writes_sent() : 0;
  return count;
}

void World::calm_down() {
  trace_.note("the weather is calm");
  // A line that was lost in the middle of a stream is lost for good: only a new list can tell.
  const bool must_list_again = weather_.lost_line > 0;
  weather_ = Weather::calm();
  cluster_->mend_nodes(dice_.percent(50));
  for (const auto& process : operators_) {
    if (!process) continue;
    process->freeze_until(now_);
    process->link().hurry();
  }
  if (!must_list_again) return;
  // A change that every watch has missed: each is older than the history now.
  (void)api_->objects().create(Resource::events, "default", {{"metadata", {{"name", "calm"}}}});
  count_step(Actor::world);
  compact();
  break_watches();
}

/// Runs until the store has not changed for a while. False: it goes on changing.
bool World::come_to_rest(std::chrono::milliseconds limit) {
  const SteadyTime end = now_ + limit;
  const long steps_max = steps_ + kDrainStepsMax;
  auto version = api_->objects().version();
  SteadyTime changed = now_;
  while (is_well() && now_ < end && steps_ < steps_max) {
    if (api_->objects().version() != version) {
      version = api_->objects().version();
      changed = now_;
    }
    if (turn()) continue;
    if (cluster_->settle(ends_well_)) {
      count_step(Actor::world);
      continue;
    }
    if (now_ >= changed + kRestAfter) return true;
    const auto time = next();
    now_ = std::min(std::max(now_, time.value_or(end)), changed + kRestAfter);
    count_step(Actor::world);
  }
  return false;
}

void World::drain() {
  calm_down();
  // Two may act at once for a while, not for ever: in the end one of them has the lease.
  if (operators_[1]) operators_[static_cast<std::size_t>(dice_.below(2))].reset();
  if (!come_to_rest(kDrainMax) && is_well())
    invariants_.report("a world without faults comes to rest");
  if (!is_well()) return;
  invariants_.look_at_rest();
  if (is_well()) check_second_look();
}

/// An operator that knows nothing finds everything as it should be.
void World::check_second_look() {
  trace_.note("every operator starts afresh");
  for (auto& process : operators_) process.reset();
  while (turn()) continue;
  const auto version = api_->objects().version();
  start_operator(0);
  (void)come_to_rest(kSecondLookMax);
  if (api_->objects().version() != version)
    invariants_.report("a second look at everything changes nothing");
}

}  // namespace tj::sim
