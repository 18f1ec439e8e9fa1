#include "trainer/workloads/pi0/act_command.h"

#include <poll.h>
#include <torch/types.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "trainer/process/durable_file.h"
#include "trainer/process/early_stop.h"
#include "trainer/process/lines.h"
#include "trainer/process/stop_request.h"
#include "trainer/workload/flag_reader.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workloads/pi0/observation.h"
#include "trainer/workloads/pi0/pi0_workload.h"
#include "trainer/workloads/pi0/trained_pi0.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using ActEnd = std::optional<Failure>;  // absent: it is done

constexpr std::int64_t kObservationBytesMax = 1 << 20;
constexpr std::int64_t kPolicyBytesMax = 64 << 20;
constexpr std::int64_t kFlowStepsMax = 1000;
constexpr const char* kObservation = "--observation";

constexpr Flag kFlags[] = {
    {.name = "--from",
     .help = "the --out of a training (its newest checkpoint), or a checkpoint",
     .required = true},
    {.name = kObservation,
     .help = "JSON file with state, task and images, a picture file of each camera; -: one in each "
             "line of standard input, answered in a line each",
     .required = true},
    {.name = "--flow-steps", .help = "Euler steps from noise to actions (10)"},
    {.name = "--seed", .help = "of the noise: the same one gives the same actions (1337)"},
};

/// Lines of standard input. A read would begin anew after a signal; a poll does not.
class InputLines {
 public:
  /// Absent at the end, and once a signal asks for it.
  Result<std::optional<std::string>> next() {
    while (true) {
      if (const auto end = held_.find('\n'); end != std::string::npos) {
        std::string line = held_.substr(0, end);
        held_.erase(0, end + 1);
        return std::optional(std::move(line));
      }
      if (static_cast<std::int64_t>(held_.size()) > kObservationBytesMax)
        return Error{.code = Code::invalid,
                     .message = "a line of standard input is longer than " +
                                std::to_string(kObservationBytesMax) + " bytes",
                     .subject = kObservation};
      const auto count = read_more();
      if (!count) return count.error();
      if (*count > 0) continue;
      if (held_.empty() || stop_signal() != 0) return std::optional<std::string>();
      return std::optional(std::exchange(held_, {}));  // the last one may have no end
    }
  }

 private:
  Result<ssize_t> read_more() {
    std::array<char, 65536> bytes{};
    while (stop_signal() == 0) {
      pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      auto count = static_cast<ssize_t>(::poll(&input, 1, /*timeout=*/-1));
      if (count > 0) count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0)
        return Error{
            .code = Code::invalid,
            .message = std::string("standard input can't be read: ") + std::strerror(errno),
            .subject = kObservation};
      held_.append(bytes.data(), static_cast<std::size_t>(count));
      return count;
    }
    return ssize_t{0};
  }

  std::string held_;
};

struct ActOrder {
  std::uint64_t seed = 0;
  int flow_steps = kFlowSteps;
};

class Acting {
 public:
  Acting(const ActOrder& order, const TrainedPi0& trained, PolicyView view, at::Device device)
      : order_(order), trained_(trained), view_(std::move(view)), device_(device) {}

  /// `name`: of the observation, for messages.
  ActEnd act(std::string_view text, const fs::path& folder, const std::string& name) {
    const auto observation = observation_from(text, folder);
    if (!observation) return refused(observation.error(), name);
    auto seen = view_.see(*observation);
    if (!seen) return refused(seen.error(), name);
    const auto chunk = chunk_of(*seen);
    if (!at::isfinite(chunk).all().item<bool>())
      return bad_data(
          Error{.code = Code::invalid,
                .message = "the policy's actions are not finite; its weights may be broken",
                .subject = trained_.weights.string()});
    nlohmann::json answer;
    answer["actions"] =
        view_.actions({chunk.const_data_ptr<float>(), static_cast<std::size_t>(chunk.numel())},
                      observation->state);
    const std::string line = answer.dump() + "\n";
    const bool is_written =
        std::fwrite(line.data(), 1, line.size(), stdout) == line.size() && std::fflush(stdout) == 0;
    if (is_written) return std::nullopt;
    return Failure{
        .exit_code = exit_code::kInputOutput,
        .reason = "OutNotWritable",
        .message = std::string("standard output can't be written: ") + std::strerror(errno)};
  }

 private:
  static ActEnd refused(const Error& error, const std::string& name) {
    return bad_data(Error{.code = Code::invalid, .message = describe(error), .subject = name});
  }

  /// float32 [horizon, action width] in the host's memory.
  at::Tensor chunk_of(std::vector<HostTensor>& seen) {
    const auto& config = trained_.config;
    Batch batch;
    for (auto& tensor : seen) {
      using enum HostTensor::Type;
      const auto type = tensor.type == uint8   ? at::kByte
                        : tensor.type == int32 ? at::kInt
                                               : at::kFloat;
      batch.push_back(at::from_blob(tensor.bytes.data(), tensor.shape, type).to(device_));
    }
    const auto number = at::full({1}, count_++, at::kLong).to(device_);
    const auto noise =
        flow_draw_by_number(order_.seed, number, {1, config.horizon, config.action_width}, device_)
            .noise;
    return trained_.model->sampled_actions(pi0_batch(batch).observation, noise, order_.flow_steps)
        .to(at::kCPU, at::kFloat)
        .contiguous();
  }

  const ActOrder order_;
  const TrainedPi0& trained_;
  PolicyView view_;
  at::Device device_;
  std::int64_t count_ = 0;  // of observations: each has noise of its own
};

ActEnd stopped() {
  if (stop_signal() == 0) return std::nullopt;
  return Failure{.exit_code = exit_code::kInterrupted,
                 .reason = "Interrupted",
                 .message = asked_by(stop_signal())};
}

Result<PolicyView> view_of(const TrainedPi0& trained) {
  std::error_code unreadable;
  const bool is_folder = fs::is_directory(trained.weights, unreadable);
  const auto folder = is_folder ? trained.weights : trained.weights.parent_path();
  const auto file = folder / kPolicyFile;
  const auto text = read_small_file(file, kPolicyBytesMax);
  if (!text) return text.error();
  const auto facts = policy_facts_from(*text);
  if (!facts)
    return Error{
        .code = Code::invalid, .message = describe(facts.error()), .subject = folder.string()};
  return PolicyView::make(robot_policy_shape(trained.config), trained.config.actions_counted,
                          *facts, folder / kPromptModelFile);
}

ActEnd act_on_lines(Acting& acting) {
  InputLines lines;
  for (std::int64_t number = 1;; ++number) {
    const auto line = lines.next();
    if (auto stop = stopped()) return stop;
    if (!line) return bad_data(line.error());
    if (!line->has_value()) return std::nullopt;
    if (auto end = acting.act(**line, fs::path(), "line " + std::to_string(number))) return end;
  }
}

ActEnd act(const CommandCall& call) {
  FlagReader reader(call.flags);
  const ActOrder order{
      .seed = static_cast<std::uint64_t>(reader.whole("--seed", {.value = "1337"}, {0, kCountMax})),
      .flow_steps = static_cast<int>(
          reader.whole("--flow-steps", {.value = std::to_string(kFlowSteps)}, {1, kFlowStepsMax}))};
  if (reader.error()) return bad_config(*reader.error());
  const auto trained =
      open_trained_pi0({.from = call.flags.find("--from")->second,
                        .options = {.precision = call.precision, .gpu = call.gpu}});
  if (auto stop = stopped()) return stop;
  if (!trained) return bad_data(trained.error());
  auto view = view_of(*trained);
  if (!view) return bad_data(view.error());
  Acting acting(order, *trained, std::move(*view), device_of(call.gpu));
  const fs::path file = call.flags.find(kObservation)->second;
  if (file == "-") return act_on_lines(acting);
  const auto text = read_small_file(file, kObservationBytesMax);
  if (!text) return bad_data(text.error());
  return acting.act(*text, file.parent_path(), std::string(kObservation) + " " + file.string());
}

}  // namespace

std::span<const WorkloadCommand> pi0_commands() {
  static constexpr WorkloadCommand kCommands[] = {
      {.name = "act",
       .title = "Says what a trained policy does next, of what a robot sees",
       .flags = kFlags,
       .run = act,
       .prints_result = true}};
  return kCommands;
}

}  // namespace tj::trainer
