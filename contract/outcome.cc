#include "contract/outcome.h"

#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "contract/utf8.h"

namespace tj {
namespace {
using nlohmann::json;
constexpr int kSignalMax = 64;
constexpr std::size_t kReasonBytesMax = 256;  // a word; only what others write is longer

json to_json(const Outcome& outcome) {
  json document = {
      {"reason", outcome.reason}, {"message", outcome.message}, {"attempt", outcome.attempt}};
  if (outcome.rank) document["rank"] = *outcome.rank;
  if (outcome.step) document["step"] = *outcome.step;
  if (const auto& saved = outcome.last_checkpoint)
    document["lastCheckpoint"] = {{"step", saved->step}, {"path", saved->path}};
  return document;
}

std::string dump(const Outcome& outcome) {
  return to_json(outcome).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

bool is_permanent(int code) {
  using namespace exit_code;
  return code == kUsage || code == kBadData || code == kBadConfig;
}

std::string describe_exit_code(int code) {
  switch (code) {
    case exit_code::kDone: return "done";
    case exit_code::kUsage: return "wrong command line (exit code 64)";
    case exit_code::kBadData: return "unusable data (exit code 65)";
    case exit_code::kRendezvous: return "rendezvous failed (exit code 69)";
    case exit_code::kInternal: return "internal error (exit code 70)";
    case exit_code::kInputOutput: return "input or output failed (exit code 74)";
    case exit_code::kInterrupted: return "interrupted with a checkpoint (exit code 75)";
    case exit_code::kPeerLost: return "a peer was lost (exit code 76)";
    case exit_code::kBadConfig: return "bad configuration (exit code 78)";
    default: break;
  }
  const int signal = code - exit_code::kSignalBase;
  if (signal <= 0 || signal > kSignalMax) return "exit code " + std::to_string(code);
  const char* name = sigabbrev_np(signal);
  return "killed by signal " + std::to_string(signal) +
         (name ? std::string(" (SIG") + name + ")" : "");
}

std::string to_termination_message(const Outcome& outcome) {
  std::string text = dump(outcome);
  if (text.size() <= kTerminationMessageBytesMax) return text;
  Outcome cut = outcome;
  cut.reason = utf8_prefix(cut.reason, kReasonBytesMax);
  if (cut.last_checkpoint && cut.last_checkpoint->path.size() > kCheckpointPathBytesMax)
    cut.last_checkpoint->path.clear();
  text = dump(cut);
  // JSON escaping may make six bytes of one, so cut until it fits; each round removes at least one
  // byte.
  while (text.size() > kTerminationMessageBytesMax && !cut.message.empty()) {
    const std::size_t excess_bytes = text.size() - kTerminationMessageBytesMax;
    cut.message.resize(cut.message.size() -
                       std::min(cut.message.size(), std::max<std::size_t>(1, excess_bytes / 6)));
    text = dump(cut);
  }
  return text;
}

Result<Outcome> from_termination_message(std::string_view text) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto is = [&](const char* key, auto check) {
    return document.contains(key) && (document[key].*check)();
  };
  if (!document.is_object() || !is("reason", &json::is_string) ||
      !is("message", &json::is_string)) {
    return Error{.code = Code::invalid,
                 .message = "not a trainer's termination message",
                 .subject = {},
                 .retry_after = {}};
  }
  Outcome outcome{
      .reason = document["reason"], .message = document["message"], .rank = {}, .step = {}};
  if (is("rank", &json::is_number_integer)) outcome.rank = document["rank"].get<int>();
  if (is("step", &json::is_number_integer)) outcome.step = document["step"].get<long long>();
  if (is("attempt", &json::is_number_integer)) outcome.attempt = document["attempt"].get<int>();
  if (is("lastCheckpoint", &json::is_object)) {
    const json& saved = document["lastCheckpoint"];
    const auto step = saved.find("step");
    const auto path = saved.find("path");
    if (step != saved.end() && step->is_number_integer()) {
      outcome.last_checkpoint = {.step = step->get<long long>(), .path = {}};
      if (path != saved.end() && path->is_string())
        outcome.last_checkpoint->path = path->get<std::string>();
    }
  }
  return outcome;
}

}  // namespace tj
