#include "contract/progress.h"

#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <utility>

#include "contract/json_integer.h"

namespace tj {
namespace {
using nlohmann::json;

void put(json& document, const char* key, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) document[key] = *value;
}

Error invalid(const std::string& message) {
  return {.code = Code::invalid, .message = message, .subject = "progress", .retry_after = {}};
}

/// What is deeply nested would be written by as deep a recursion.
std::string shown(const json& value) {
  if (value.is_structured() && !value.empty()) return value.is_array() ? "[...]" : "{...}";
  return value.dump().substr(0, 40);
}

/// Reads fields of one object and keeps the first complaint.
class Fields {
 public:
  Fields(const json& object, std::string at) : object_(object), at_(std::move(at)) {}

  void read(const char* key, std::string& value) {
    if (const json* field = find(key, &json::is_string, "a string")) value = *field;
  }
  void read(const char* key, double& value) {
    if (const json* field = find(key, &json::is_number, "a number")) value = *field;
  }
  void read(const char* key, std::optional<double>& value) {
    if (const json* field = find(key, &json::is_number, "a number")) value = field->get<double>();
  }
  template <std::signed_integral Number>
  void read(const char* key, Number& value) {
    const json* field = find(key, &json::is_number_integer, "an integer");
    if (field == nullptr) return;
    const auto number = json_integer<Number>(*field);
    if (!number) return complain(at_ + key + " is " + shown(*field) + ", which is too large");
    value = *number;
  }
  const json* find(const char* key, bool (json::*is)() const noexcept, const char* wanted) {
    const auto field = object_.find(key);
    if (field == object_.end() || field->is_null()) return nullptr;
    if (((*field).*is)()) return &*field;
    complain(at_ + key + " is " + shown(*field) + ", and must be " + wanted);
    return nullptr;
  }
  void complain(const std::string& what) {
    if (complaint_.empty()) complaint_ = what;
  }
  const std::string& complaint() const { return complaint_; }

 private:
  const json& object_;
  std::string at_;
  std::string complaint_;
};

}  // namespace

std::string to_progress_document(const Progress& progress) {
  json document = {{"attempt", progress.attempt},
                   {"step", progress.step},
                   {"heartbeatAgeSeconds", progress.heartbeat_age_seconds}};
  if (!progress.phase.empty()) document["phase"] = progress.phase;
  if (progress.steps > 0) document["steps"] = progress.steps;
  put(document, "loss", progress.loss);
  put(document, "tokensPerSecond", progress.tokens_per_second);
  put(document, "mfu", progress.mfu);
  put(document, "etaSeconds", progress.eta_seconds);
  if (const auto& saved = progress.last_checkpoint)
    document["lastCheckpoint"] = {{"step", saved->step}, {"path", saved->path}};
  for (const auto& rank : progress.stalled) {
    document["stalled"].push_back({{"rank", rank.rank},
                                   {"node", rank.node},
                                   {"phase", rank.phase},
                                   {"seconds", rank.seconds}});
  }
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Progress> from_progress_document(std::string_view text) {
  if (text.size() > kProgressBytesMax) {
    return invalid("the document has " + std::to_string(text.size()) + " bytes, and may have " +
                   std::to_string(kProgressBytesMax));
  }
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return invalid("not a JSON object");
  Progress progress;
  Fields fields(document, "");
  fields.read("attempt", progress.attempt);
  fields.read("phase", progress.phase);
  fields.read("step", progress.step);
  fields.read("steps", progress.steps);
  fields.read("loss", progress.loss);
  fields.read("tokensPerSecond", progress.tokens_per_second);
  fields.read("mfu", progress.mfu);
  fields.read("etaSeconds", progress.eta_seconds);
  fields.read("heartbeatAgeSeconds", progress.heartbeat_age_seconds);
  if (!document.contains("step")) fields.complain("step is missing");
  if (const json* saved = fields.find("lastCheckpoint", &json::is_object, "an object")) {
    Fields inner(*saved, "lastCheckpoint.");
    inner.read("step", progress.last_checkpoint.emplace().step);
    inner.read("path", progress.last_checkpoint->path);
    if (!inner.complaint().empty()) fields.complain(inner.complaint());
  }
  if (const json* stalled = fields.find("stalled", &json::is_array, "a list")) {
    for (const json& item : *stalled) {
      if (!item.is_object()) {
        fields.complain("stalled holds " + shown(item) + ", and must hold objects");
        break;
      }
      auto& rank = progress.stalled.emplace_back();
      Fields inner(item, "stalled[].");
      inner.read("rank", rank.rank);
      inner.read("node", rank.node);
      inner.read("phase", rank.phase);
      inner.read("seconds", rank.seconds);
      if (!inner.complaint().empty()) fields.complain(inner.complaint());
    }
  }
  if (!fields.complaint().empty()) return invalid(fields.complaint());
  return progress;
}

}  // namespace tj
