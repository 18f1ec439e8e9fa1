#include "cli/local/run_keeper.h"

#include <utility>

namespace tj {

RunKeeper::RunKeeper(boost::asio::io_context& loop, MemoryApi& api, std::filesystem::path folder)
    : api_(api), folder_(std::move(folder)), timer_(loop) {
  for (const Resource resource : {Resource::training_jobs, Resource::pods, Resource::events})
    follow(resource);
}

void RunKeeper::follow(Resource resource) {
  streams_.push_back(
      api_.subscribe(resource, [this](const ObjectChange& change) { take(change); }));
}

void RunKeeper::take(const ObjectChange& change) {
  const ObjectKey key = key_of(*change.object);
  auto& known = objects_[change.resource];
  if (change.type == ChangeType::deleted) {
    const bool is_kept = keeps_deleted_ || change.resource == Resource::events;
    if (!is_kept) known.erase(key);
  } else {
    const bool is_new = known.insert_or_assign(key, change.object).second;
    if (is_new && change.resource == Resource::events) event_keys_.push_back(key);
  }
  while (event_keys_.size() > kEventsMax) {
    objects_[Resource::events].erase(event_keys_.front());
    event_keys_.pop_front();
  }
  has_news_ = true;
  write_in_turn();
}

/// At once where the last write is long ago: who asks for a run that has just begun finds it.
void RunKeeper::write_in_turn() {
  if (waits_ || !has_news_) return;
  write();
  waits_ = true;
  timer_.expires_after(kWriteWait);
  timer_.async_wait([this](auto failure) {
    if (failure) return;
    waits_ = false;
    write_in_turn();
  });
}

RunObjects RunKeeper::objects() const {
  // Events come in the order in which they happened: their times are whole seconds.
  std::vector<nlohmann::json> events;
  for (const ObjectKey& key : event_keys_) events.push_back(*objects_.at(Resource::events).at(key));
  const auto all = [this](Resource resource) {
    std::vector<nlohmann::json> list;
    const auto found = objects_.find(resource);
    if (found == objects_.end()) return list;
    for (const auto& [key, object] : found->second) list.push_back(*object);
    return list;
  };
  return {.jobs = all(Resource::training_jobs),
          .pods = all(Resource::pods),
          .events = std::move(events)};
}

void RunKeeper::write() {
  has_news_ = false;
  const auto written = write_run_objects(folder_, objects());
  if (!written && failure_.ok()) failure_ = written;
}

Result<void> RunKeeper::finish() {
  write();
  return failure_;
}

}  // namespace tj
