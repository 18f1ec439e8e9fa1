#include "tests/sim/link.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tj::sim {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::milliseconds kSlowMax = 40s;  // beyond kRequestDeadline

bool is_write(Verb verb) { return verb != Verb::get && verb != Verb::list; }

std::string describe_request(const Request& request) {
  std::string name = request.name;
  if (request.verb == Verb::create) {
    // The name comes near the front of the metadata; events are named by a hash.
    const auto body = nlohmann::json::parse(request.body, nullptr, false);
    name = body["metadata"].value("name", "");
  }
  const std::string what =
      std::string(to_string(request.verb)) + " " + to_string(request.resource) + " " + name;
  if (request.verb != Verb::patch_status) return what;
  const auto status = nlohmann::json::parse(request.body, nullptr, false)["status"];
  return what + " to " + status.value("phase", "") + " " + status.value("reason", "") +
         " attempt " + std::to_string(status.value("attempt", -1)) + " \"" +
         status.value("message", "") + "\"";
}

/// uid of the object of a watch line about a job that goes, else empty.
std::string mourned_job(const std::string& line) {
  const bool may_go = line.find("\"DELETED\"") != std::string::npos ||
                      line.find("\"deletionTimestamp\"") != std::string::npos;
  if (!may_go) return "";
  const auto event = nlohmann::json::parse(line, nullptr, false);
  const auto& meta = event.at("object").at("metadata");
  const bool goes = event.at("type") == "DELETED" || meta.contains("deletionTimestamp");
  return goes ? meta.value("uid", "") : "";
}

}  // namespace

struct Link::Stream {
  Resource resource = Resource::pods;
  WatchHandler handler;
  std::unique_ptr<WatchStream> inner;
  SteadyTime last_at;
  bool is_cancelled = false;
  bool is_broken = false;
};

class Link::StreamHandle final : public WatchStream {
 public:
  explicit StreamHandle(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~StreamHandle() override {
    stream_->is_cancelled = true;
    stream_->inner.reset();
  }
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;

 private:
  std::shared_ptr<Stream> stream_;
};

Link::~Link() {
  alive_.reset();
  for (Message& message : messages_) {
    if (message.is_request && world_.dice.percent(50)) message.arrive();
  }
}

void Link::post(Message message) {
  message.at = world_.now;
  if (world_.dice.per_mille(world_.weather.slow)) message.at += world_.dice.up_to(kSlowMax);
  if (message.stream) {
    message.at = std::max(message.at, message.stream->last_at);
    message.stream->last_at = message.at;
  }
  messages_.push_back(std::move(message));
}

Error Link::refusal() {
  static const Error kErrors[] = {
      {Code::conflict, "injected conflict", "", {}},
      {Code::gone, "injected gone", "", {}},
      {Code::unavailable, "injected overload", "", 2s},
      {Code::unavailable, "injected failure", "", {}},
      {Code::timeout, "injected timeout", "", {}},
      {Code::internal, "injected nonsense", "", {}},
      {Code::forbidden, "injected quota", "", {}},
  };
  return world_.dice.pick(kErrors);
}

void Link::send(Request request, Done done) {
  ++requests_sent_;
  if (is_write(request.verb)) ++writes_sent_;
  watch_for_late_creation(request);
  const auto id = ++ids_given_;
  const std::string what = describe_request(request);
  pending_.emplace(id, Pending{std::move(done), world_.now + request.deadline, what});
  if (world_.dice.per_mille(world_.weather.refusal)) {
    const Error error = refusal();
    world_.trace.note(name_ + " " + what + ": " + error.message);
    return post({.arrive = [this, id, error] { settle(id, error); }});
  }
  world_.trace.note(name_ + " " + what);
  post({.arrive =
            [this, id, request = std::move(request), alive = std::weak_ptr(alive_)]() mutable {
              forward(alive.expired() ? 0 : id, std::move(request));
            },
        .is_request = true});
}

void Link::forward(unsigned long long id, Request request) {
  world_.server.send(std::move(request),
                     [this, id, alive = std::weak_ptr(alive_)](Result<std::string> result) {
                       if (!alive.expired()) answer(id, std::move(result));
                     });
}

void Link::answer(unsigned long long id, Result<std::string> result) {
  if (world_.dice.per_mille(world_.weather.lost_answer)) {
    const Code code = world_.dice.percent(50) ? Code::timeout : Code::unavailable;
    result = Error{code, "injected loss of the answer", "", {}};
  }
  post({.arrive = [this, id, result = std::move(result)] { settle(id, result); }});
}

void Link::settle(unsigned long long id, Result<std::string> result) {
  auto found = pending_.extract(id);
  if (found.empty()) return;  // timed out before
  if (!result)
    world_.trace.note(name_ + "   " + found.mapped().what + " -> " +
                      to_string(result.error().code) + " " + result.error().message);
  found.mapped().done(std::move(result));
}

std::unique_ptr<WatchStream> Link::watch(WatchRequest request, WatchHandler handler) {
  auto stream = std::make_shared<Stream>();
  stream->resource = request.resource;
  stream->handler = std::move(handler);
  std::erase_if(streams_, [](const auto& known) { return known.expired(); });
  streams_.push_back(stream);
  const auto weak = std::weak_ptr(stream);
  WatchHandler inner{
      .on_line =
          [this, weak](const std::string& line) {
            const auto known = weak.lock();
            if (!known || known->is_broken) return;
            if (world_.dice.per_mille(world_.weather.lost_line)) {
              return world_.trace.note(name_ + "   a line of " + to_string(known->resource) +
                                       " is lost");
            }
            const int copies = world_.dice.per_mille(world_.weather.double_line) ? 2 : 1;
            for (int copy = 0; copy < copies; ++copy) {
              post({.stream = known, .arrive = [this, known, line] { deliver_line(known, line); }});
            }
          },
      .on_end =
          [this, weak](const Result<void>& end) {
            const auto known = weak.lock();
            if (!known || known->is_broken) return;
            post({.stream = known, .arrive = [known, end] {
                    if (!known->is_cancelled && !known->is_broken) known->handler.on_end(end);
                  }});
          }};
  stream->inner = world_.server.watch(std::move(request), std::move(inner));
  return std::make_unique<StreamHandle>(std::move(stream));
}

void Link::deliver_line(const std::shared_ptr<Stream>& stream, const std::string& line) {
  if (stream->is_cancelled || stream->is_broken) return;
  if (stream->resource == Resource::training_jobs) {
    if (const std::string uid = mourned_job(line); !uid.empty()) mourned_.insert(uid);
  }
  stream->handler.on_line(line);
}

void Link::break_streams() {
  for (const auto& known : streams_) {
    const auto stream = known.lock();
    if (!stream || stream->is_cancelled || stream->is_broken) continue;
    stream->is_broken = true;
    stream->inner.reset();
    post({.arrive = [stream] {
      if (!stream->is_cancelled)
        stream->handler.on_end(Error{Code::unavailable, "injected reset", "", {}});
    }});
  }
}

std::vector<std::size_t> Link::arriving() const {
  std::vector<std::size_t> ready;
  std::vector<const Stream*> seen;
  for (std::size_t index = 0; index < messages_.size(); ++index) {
    const Message& message = messages_[index];
    if (message.stream) {
      const bool is_behind =
          std::find(seen.begin(), seen.end(), message.stream.get()) != seen.end();
      if (is_behind) continue;
      seen.push_back(message.stream.get());
    }
    if (message.at <= world_.now) ready.push_back(index);
  }
  return ready;
}

bool Link::is_ready() const {
  const auto first = next();
  return first && *first <= world_.now;
}

void Link::turn() {
  expire();
  const std::vector<std::size_t> ready = arriving();
  const auto index = world_.dice.pick(ready);
  const auto arrive = std::move(messages_[index].arrive);
  messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(index));
  arrive();
}

std::optional<SteadyTime> Link::next() const {
  std::optional<SteadyTime> first;
  const auto take = [&first](SteadyTime at) { first = std::min(first.value_or(at), at); };
  for (const Message& message : messages_) take(message.at);
  for (const auto& [id, request] : pending_) take(request.deadline);
  return first;
}

void Link::expire() {
  std::vector<unsigned long long> late;
  for (const auto& [id, request] : pending_) {
    if (request.deadline <= world_.now) late.push_back(id);
  }
  for (const auto id : late) {
    pending_.at(id).deadline = SteadyTime::max();
    messages_.push_back({.at = world_.now, .arrive = [this, id] {
                           settle(id, Error{Code::timeout, "no answer in time", "", {}});
                         }});
  }
}

void Link::hurry() {
  for (Message& message : messages_) message.at = std::min(message.at, world_.now);
}

void Link::watch_for_late_creation(const Request& request) {
  if (request.verb != Verb::create || request.resource == Resource::events) return;
  for (const std::string& uid : mourned_) {
    if (request.body.find(uid) != std::string::npos) late_creation_ = describe_request(request);
  }
}

}  // namespace tj::sim
