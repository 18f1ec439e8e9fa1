// MemoryApi's part of a kubelet: the subresource `log`, with the words in which a real one refuses.
#include "operator/api/pod_json.h"
#include "operator/api/read.h"
#include "operator/local/memory_stream.h"

namespace tj {
namespace {

Error bad_request(const WatchRequest& request, std::string message) {
  return Error{Code::forbidden, std::move(message), "pods " + request.name, {}};  // HTTP 400
}

}  // namespace

Result<LogKey> MemoryApi::log_key(const WatchRequest& request) const {
  const auto pod = store_.get(Resource::pods, {request.ns, request.name});
  if (!pod) return pod.error();
  const std::string& asked = request.log->container;
  LogKey key{.ns = request.ns,
             .pod = request.name,
             .container = asked.empty() ? read::string_at(main_container(*pod), "name") : asked,
             .previous = request.log->previous};
  if (logs_.has(key)) return key;
  const std::string container = "container \"" + key.container + "\" in pod \"" + key.pod + "\"";
  if (key.previous) return bad_request(request, "previous terminated " + container + " not found");
  return bad_request(request, container + " is waiting to start: ContainerCreating");
}

void MemoryApi::open_log(const std::shared_ptr<Stream>& stream) {
  const auto key = log_key(stream->request);
  if (!key) return finish(stream, key.error());
  const LogOptions& options = *stream->request.log;
  for (std::string& line : logs_.read(*key, options)) write_line(stream, std::move(line));
  if (!options.follow || logs_.has_ended(*key)) return finish(stream, {});
  stream->log_key = *key;
  std::erase_if(streams_, [](const auto& known) { return known.expired(); });
  streams_.push_back(stream);
}

void MemoryApi::on_log(const LogKey& key, const LogEntry* entry) {
  for (const auto& stream : open_streams()) {
    if (stream->log_key != key) continue;
    if (entry == nullptr) {
      finish(stream, {});
    } else {
      write_line(stream, log_line(*entry, stream->request.log->timestamps));
    }
  }
}

void MemoryApi::end_logs(Result<void> end) {
  for (const auto& stream : open_streams()) {
    if (stream->log_key) finish(stream, end);
  }
}

int MemoryApi::log_count() const {
  int count = 0;
  for (const auto& stream : open_streams()) count += stream->log_key ? 1 : 0;
  return count;
}

}  // namespace tj
