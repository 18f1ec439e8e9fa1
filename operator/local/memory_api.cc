#include "operator/local/memory_api.h"

#include "operator/api/read.h"
#include "operator/kube/cache.h"
#include "operator/local/memory_stream.h"

namespace tj {
namespace {

using Json = nlohmann::json;

Error invalid(const Request& request, std::string message) {
  return Error{.code = Code::invalid,
               .message = std::move(message),
               .subject = request.name,
               .retry_after = {}};
}

/// Absent: not JSON. An empty body is an empty object, as DELETE without options has it.
std::optional<Json> parse_body(const std::string& body) {
  if (body.empty()) return Json::object();
  Json parsed = read::parse(body);
  if (!parsed.is_object()) return std::nullopt;
  return parsed;
}

/// An object without a namespace is one of the request's.
void take_namespace(Json& object, const Request& request) {
  const auto meta = object.find("metadata");
  if (meta != object.end() && meta->is_object() && object_rules::has_namespace(request.resource))
    meta->emplace("namespace", request.ns);
}

Result<std::string> dumped(Result<Json> result) {
  if (!result) return result.error();
  return result->dump();
}

std::string log_line(const Request& request) {
  std::string name = request.name;
  if (request.verb == Verb::create) {
    if (const auto body = parse_body(request.body); body && body->contains("metadata"))
      name = key_of(*body).name;
  }
  return std::string(to_string(request.verb)) + " " + qualified_name(request.resource) + " " +
         to_string(ObjectKey{request.ns, name});
}

std::string watch_line(const char* type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump();
}

std::string gone_line(std::uint64_t version, std::uint64_t oldest) {
  return watch_line("ERROR", {{"kind", "Status"},
                              {"apiVersion", "v1"},
                              {"metadata", Json::object()},
                              {"status", "Failure"},
                              {"message", "too old resource version: " + std::to_string(version) +
                                              " (" + std::to_string(oldest) + ")"},
                              {"reason", "Expired"},
                              {"code", 410}});
}

}  // namespace

class MemoryApi::StreamHandle final : public WatchStream {
 public:
  explicit StreamHandle(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~StreamHandle() override { stream_->cancelled = true; }
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;

 private:
  std::shared_ptr<Stream> stream_;
};

MemoryApi::MemoryApi(Post post, ObjectStore::Clock now, ObjectStoreOptions options)
    : post_(std::move(post)),
      store_(std::move(now), options),
      bookmark_every_versions_(options.history_changes_max / 2 + 1) {
  store_.set_listener([this](const ObjectChange& change) { on_change(change); });
  logs_.set_listener([this](const LogKey& key, const LogEntry* entry) { on_log(key, entry); });
}

MemoryApi::~MemoryApi() = default;

void MemoryApi::later(std::function<void()> work) {
  post_([alive = std::weak_ptr<int>(alive_), work = std::move(work)] {
    if (!alive.expired()) work();
  });
}

void MemoryApi::send(Request request, Done done) {
  later([this, request = std::move(request), done = std::move(done)] { serve(request, done); });
}

void MemoryApi::serve(const Request& request, Done done) {
  const auto fault = request_fault_ ? request_fault_(request) : std::nullopt;
  request_log_.push_back(log_line(request));
  const auto answer = [this, done](Result<std::string> result) {
    later([done, result = std::move(result)] { done(result); });
  };
  if (fault && fault->kind == RequestFault::Kind::fail_before) return answer(fault->error);
  Result<std::string> result = effect(request);
  if (fault && fault->kind == RequestFault::Kind::fail_after) return answer(fault->error);
  if (!fault) return answer(std::move(result));
  held_answers_.push_back([answer, result = std::move(result)] { answer(result); });
}

Result<std::string> MemoryApi::effect(const Request& request) {
  auto body = parse_body(request.body);
  if (!body) return invalid(request, "the request body is not a JSON object");
  const ObjectKey key{request.ns, request.name};
  switch (request.verb) {
    case Verb::get: return dumped(store_.get(request.resource, key));
    case Verb::list:
      return dumped(store_.list(request.resource,
                                {request.ns, request.label_selector, request.field_selector},
                                request.continue_token, request.limit));
    case Verb::create: return dumped(store_.create(request.resource, request.ns, *std::move(body)));
    case Verb::replace:
      take_namespace(*body, request);
      if (key_of(*body) != key) return invalid(request, "the object's name is not the request's");
      return dumped(store_.replace(request.resource, *std::move(body)));
    case Verb::patch: return dumped(store_.patch(request.resource, key, *body));
    case Verb::patch_status: return dumped(store_.patch_status(request.resource, key, *body));
    case Verb::remove: return dumped(store_.remove(request.resource, key, *body));
  }
  return invalid(request, "unknown verb");
}

std::unique_ptr<WatchStream> MemoryApi::watch(WatchRequest request, WatchHandler handler) {
  auto stream = std::make_shared<Stream>();
  stream->request = std::move(request);
  stream->handler = std::move(handler);
  later([this, stream] {
    if (!stream->cancelled) open(stream);
  });
  return std::make_unique<StreamHandle>(std::move(stream));
}

std::unique_ptr<WatchStream> MemoryApi::subscribe(Resource resource, ChangeHandler handler) {
  auto stream = std::make_shared<Stream>();
  stream->request.resource = resource;
  stream->on_change = std::move(handler);
  stream->open = true;
  streams_.push_back(stream);
  for (const Json& object : store_.objects(resource)) {
    offer(stream, {store_.version(), resource, ChangeType::added,
                   std::make_shared<const Json>(object), nullptr});
  }
  return std::make_unique<StreamHandle>(std::move(stream));
}

/// Version "" or "0" means any: the present objects come first. A version that history forgot is
/// answered by an ERROR line with code 410 inside a good stream, as the real server's watch cache
/// does.
void MemoryApi::open(const std::shared_ptr<Stream>& stream) {
  const WatchRequest& request = stream->request;
  stream->open = true;
  if (const auto fault = watch_fault_ ? watch_fault_(request) : std::nullopt)
    return finish(stream, *fault);
  if (request.log) return open_log(stream);
  auto selector = LabelSelector::parse(request.label_selector);
  if (!selector) return finish(stream, selector.error());
  stream->selector = *std::move(selector);
  const std::uint64_t from = version_number(request.resource_version);
  if (from != 0 && from < store_.compacted_version()) {
    post_line(stream, gone_line(from, store_.compacted_version()));
    return finish(stream, {});
  }
  std::erase_if(streams_, [](const auto& known) { return known.expired(); });
  streams_.push_back(stream);
  stream->told_version = from;
  if (from == 0) {
    for (const Json& object :
         store_.objects(request.resource, request.ns, request.label_selector)) {
      write_line(stream, watch_line("ADDED", object));
    }
    stream->told_version = store_.version();
    return;
  }
  for (const ObjectChange& change : store_.history()) {
    if (change.version > from) offer(stream, change);
  }
}

std::vector<std::shared_ptr<MemoryApi::Stream>> MemoryApi::open_streams() const {
  std::vector<std::shared_ptr<Stream>> found;
  for (const auto& known : streams_) {
    auto stream = known.lock();
    if (stream && stream->open && !stream->cancelled) found.push_back(std::move(stream));
  }
  return found;
}

void MemoryApi::on_change(const ObjectChange& change) {
  for (const auto& stream : open_streams()) {
    if (stream->log_key) continue;
    offer(stream, change);
    if (!stream->on_change && change.version >= stream->told_version + bookmark_every_versions_)
      bookmark(stream);
  }
  const bool may_orphan = change.type == ChangeType::deleted ||
                          (change.type == ChangeType::added &&
                           change.object->at("metadata").contains("ownerReferences"));
  if (may_orphan) schedule_garbage_collection();
}

/// A selected watch sees an object arrive and leave as its labels do: ADDED and DELETED then mean
/// "in the selection".
void MemoryApi::offer(const std::shared_ptr<Stream>& stream, const ObjectChange& change) {
  if (change.resource != stream->request.resource) return;
  if (stream->on_change) {
    later([stream, change] {
      if (!stream->cancelled) stream->on_change(change);
    });
    return;
  }
  const std::string& ns = stream->request.ns;
  if (!ns.empty() && key_of(*change.object).ns != ns) return;
  const bool is_in =
      change.type != ChangeType::deleted && stream->selector.matches(labels_of(*change.object));
  const bool was_in = change.previous && stream->selector.matches(labels_of(*change.previous));
  if (!is_in && !was_in) return;
  const char* type = !is_in ? "DELETED" : (was_in ? "MODIFIED" : "ADDED");
  Json object = is_in || change.type == ChangeType::deleted ? *change.object : *change.previous;
  object["metadata"]["resourceVersion"] = std::to_string(change.version);
  write_line(stream, watch_line(type, object));
  stream->told_version = change.version;
}

void MemoryApi::write_line(const std::shared_ptr<Stream>& stream, std::string line) {
  const LineFault fault = line_fault_ ? line_fault_(stream->request, line) : LineFault::none;
  if (fault == LineFault::drop) return;
  if (fault == LineFault::delay || !stream->held_lines.empty()) {
    stream->held_lines.push_back(std::move(line));
    return;
  }
  if (fault == LineFault::duplicate) post_line(stream, line);
  post_line(stream, std::move(line));
}

void MemoryApi::post_line(const std::shared_ptr<Stream>& stream, std::string line) {
  later([stream, line = std::move(line)] {
    if (!stream->cancelled) stream->handler.on_line(line);
  });
}

void MemoryApi::bookmark(const std::shared_ptr<Stream>& stream) {
  const Resource resource = stream->request.resource;
  stream->told_version = store_.version();
  write_line(stream,
             watch_line("BOOKMARK", {{"kind", kind_of(resource)},
                                     {"apiVersion", api_version_of(resource)},
                                     {"metadata",
                                      {{"resourceVersion", std::to_string(store_.version())},
                                       {"creationTimestamp", nullptr}}}}));
}

/// No line is added after this; those that are held come first.
void MemoryApi::finish(const std::shared_ptr<Stream>& stream, Result<void> end) {
  stream->open = false;
  if (!stream->held_lines.empty()) {
    stream->held_end = std::move(end);
    return;
  }
  later([stream, end = std::move(end)] {
    if (!stream->cancelled) stream->handler.on_end(end);
  });
}

void MemoryApi::release_answers() {
  for (const auto& answer : std::exchange(held_answers_, {})) answer();
}

void MemoryApi::release_lines() {
  for (const auto& known : streams_) {
    const auto stream = known.lock();
    if (!stream) continue;
    for (std::string& line : std::exchange(stream->held_lines, {}))
      post_line(stream, std::move(line));
    if (stream->held_end) finish(stream, *std::exchange(stream->held_end, std::nullopt));
  }
}

void MemoryApi::send_bookmarks() {
  for (const auto& stream : open_streams()) {
    if (!stream->on_change && !stream->log_key) bookmark(stream);
  }
}

void MemoryApi::end_watches(Result<void> end) {
  for (const auto& stream : open_streams()) {
    if (stream->on_change || stream->log_key) continue;
    if (end.ok()) bookmark(stream);
    finish(stream, end);
  }
}

int MemoryApi::watch_count(std::optional<Resource> resource) const {
  int count = 0;
  for (const auto& stream : open_streams()) {
    if (stream->log_key) continue;
    if (!stream->on_change && (!resource || stream->request.resource == *resource)) ++count;
  }
  return count;
}

void MemoryApi::schedule_garbage_collection() {
  if (std::exchange(garbage_collection_scheduled_, true)) return;
  later([this] {
    garbage_collection_scheduled_ = false;
    store_.collect_garbage();
  });
}

}  // namespace tj
