#include "operator/kube/watcher.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "contract/utf8.h"
#include "operator/api/read.h"
#include "operator/kube/cache.h"

namespace tj {
namespace {
using namespace read;

struct Page {
  std::vector<std::string> objects;
  std::string resource_version;
  std::string continue_token;
};

Error malformed(const std::string& what) { return Error{Code::internal, what, "watch", {}}; }

std::string version_of(const json& object) {
  return string_at(object_at(object, "metadata"), "resourceVersion");
}

/// Takes the items out one by one, so that never more than one of a page exists as a tree.
Result<Page> parse_list(const std::string& text) {
  Page page;
  bool in_items = false;
  bool in_metadata = false;
  const auto keep = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key) {
      if (depth == 1) in_items = parsed == "items";
      if (depth == 3) in_metadata = parsed == "metadata";
      // items[n].metadata.managedFields is often half of an object, and nobody here reads it.
      return depth != 4 || !in_metadata || parsed != "managedFields";
    }
    const bool begins =
        event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (begins && depth >= kLevelsMax) return false;
    if (event != json::parse_event_t::object_end || depth != 2 || !in_items) return true;
    page.objects.push_back(parsed.dump());
    return false;
  };
  json list = json::parse(text, keep, false);
  if (list.is_discarded() && valid_utf8_bytes(text) < text.size()) {
    page = {};
    list = json::parse(with_invalid_utf8_replaced(text), keep, false);
  }
  if (!list.is_object()) return malformed("the list is not a JSON object");
  page.resource_version = version_of(list);
  if (page.resource_version.empty()) return malformed("the list has no metadata.resourceVersion");
  page.continue_token = string_at(object_at(list, "metadata"), "continue");
  return page;
}

struct StreamEvent {
  std::string type;
  json object;
};

Result<StreamEvent> parse_event(const std::string& line) {
  json event = parse(without_managed_fields(line, 3));
  if (!value_at(event, "object").is_object()) {
    return malformed("not a watch event: " +
                     std::string(utf8_prefix(with_invalid_utf8_replaced(line), 200)));
  }
  return StreamEvent{.type = string_at(event, "type"), .object = std::move(event["object"])};
}

/// The next of a sequence of numbers that look random (Steele et al., SplitMix, 32 bits).
unsigned split_mix(unsigned& state) {
  state += 0x9e3779b9U;
  unsigned mixed = state;
  mixed = (mixed ^ (mixed >> 16)) * 0x85ebca6bU;
  mixed = (mixed ^ (mixed >> 13)) * 0xc2b2ae35U;
  return mixed ^ (mixed >> 16);
}

}  // namespace

bool Upsert::operator==(const Upsert& other) const { return *object == *other.object; }
bool Erase::operator==(const Erase& other) const { return *object == *other.object; }

WatchStep Watcher::start() { return list_from_start(); }

WatchStep Watcher::list_from_start() {
  state_ = State::listing;
  pages_ = 0;
  return {.deltas = {}, .command = StartList{}, .relist_reason = {}};
}

WatchStep Watcher::watch_from_last() {
  state_ = State::watching;
  line_seen_ = false;
  return {.deltas = {}, .command = StartWatch{resource_version_}, .relist_reason = {}};
}

/// Between half and the whole of the backoff, and never less than the server asked for.
std::chrono::milliseconds Watcher::next_delay(const Error& error) {
  const auto half = backoff_.count() / 2;
  const auto spread = static_cast<unsigned>(half) + 1;
  const std::chrono::milliseconds jittered{half + split_mix(jitter_state_) % spread};
  backoff_ = std::min(backoff_ * 2, kBackoffMax);
  const auto wished = error.retry_after.value_or(std::chrono::milliseconds{0});
  return std::max(jittered, std::min(wished, kRetryAfterMax));
}

WatchStep Watcher::wait(State next, const Error& error, std::string relist_reason) {
  state_ = next;
  return {.deltas = {},
          .command = WaitThenStep{next_delay(error)},
          .relist_reason = std::move(relist_reason)};
}

/// At once the first time: the version is old, nothing is broken. A second time without a line in
/// between means that the server can't keep up, and more lists would not help it.
WatchStep Watcher::relist_gone() {
  const bool first = backoff_ == kBackoffMin;
  if (!first) return wait(State::waiting_to_list, Error{}, "gone");
  backoff_ = std::min(backoff_ * 2, kBackoffMax);
  WatchStep step = list_from_start();
  step.relist_reason = "gone";
  return step;
}

WatchStep Watcher::resume(const Error& error) {
  if (error.code == Code::gone) return relist_gone();
  if (++resumes_ <= kResumesMax) return wait(State::waiting_to_watch, error, "");
  resumes_ = 0;
  return wait(State::waiting_to_list, error, "error");
}

void Watcher::made_progress() {
  backoff_ = kBackoffMin;
  resumes_ = 0;
}

WatchStep Watcher::on_list(const Result<std::string>& page) {
  if (state_ != State::listing) return {};
  if (!page && page.error().code == Code::gone) return relist_gone();
  if (!page) return wait(State::waiting_to_list, page.error(), "error");
  Result<Page> parsed = parse_list(*page);
  if (!parsed) return wait(State::waiting_to_list, parsed.error(), "malformed");
  if (++pages_ > kPagesMax) return wait(State::waiting_to_list, Error{}, "malformed");

  const bool is_last = parsed->continue_token.empty();
  if (is_last) resource_version_ = parsed->resource_version;
  Replace delta{.objects = std::move(parsed->objects),
                .resource_version = is_last ? resource_version_ : "",
                .continues = pages_ > 1};
  WatchStep step;
  if (is_last) {
    synced_ = true;
    step = watch_from_last();
  } else {
    step.command = StartList{parsed->continue_token};
  }
  step.deltas.push_back(std::move(delta));
  return step;
}

/// The object of an ERROR event is a metav1.Status; its code is an HTTP status.
WatchStep Watcher::on_error_event(const std::string& status_json) {
  const json status = parse(status_json);
  const Code code = number_at(status, "code") == 410 ? Code::gone : Code::unavailable;
  return resume({code, string_at(status, "message"), "watch", retry_after_of(status)});
}

WatchStep Watcher::on_line(const std::string& line) {
  if (state_ != State::watching) return {};
  Result<StreamEvent> event = parse_event(line);
  if (!event) return wait(State::waiting_to_list, event.error(), "malformed");
  if (event->type == "ERROR") return on_error_event(event->object.dump());

  const bool upsert = event->type == "ADDED" || event->type == "MODIFIED";
  const bool erase = event->type == "DELETED";
  const std::string version = version_of(event->object);
  if ((!upsert && !erase && event->type != "BOOKMARK") || version.empty()) {
    return wait(State::waiting_to_list, malformed("unknown event"), "malformed");
  }
  if (version_number(version) < version_number(resource_version_)) {
    return wait(State::waiting_to_list, malformed("an older version"), "went_back");
  }
  made_progress();
  line_seen_ = true;
  resource_version_ = version;
  WatchStep step;
  if (upsert) step.deltas.push_back(Upsert{std::make_shared<const json>(std::move(event->object))});
  if (erase) step.deltas.push_back(Erase{std::make_shared<const json>(std::move(event->object))});
  return step;
}

WatchStep Watcher::on_watch_end(const Result<void>& end) {
  if (state_ != State::watching) return {};
  if (!end) return resume(end.error());
  const bool spinning = !line_seen_ && last_quiet_;
  last_quiet_ = !line_seen_;
  made_progress();
  if (!spinning) return watch_from_last();
  state_ = State::waiting_to_watch;
  return {.deltas = {}, .command = WaitThenStep{kQuietWait}, .relist_reason = {}};
}

WatchStep Watcher::on_waited() {
  if (state_ == State::waiting_to_list) return list_from_start();
  if (state_ == State::waiting_to_watch) return watch_from_last();
  return {};
}

}  // namespace tj
