#include "trainer/workloads/qwen_vggt/generate_command.h"

#include <torch/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>

#include "trainer/process/durable_file.h"
#include "trainer/process/early_stop.h"
#include "trainer/process/lines.h"
#include "trainer/process/stop_request.h"
#include "trainer/workload/flag_reader.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workload/text_output.h"
#include "trainer/workload/token_chooser.h"
#include "trainer/workloads/qwen_vggt/answer.h"
#include "trainer/workloads/qwen_vggt/qwen_vggt_workload.h"
#include "trainer/workloads/qwen_vggt/trained_qwen.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using GenerateEnd = std::optional<Failure>;  // absent: it is done

constexpr std::int64_t kTokensMax = 100'000;
constexpr std::int64_t kPreprocessorBytesMax = 1 << 20;
constexpr double kTemperatureMax = 100;
constexpr const char* kConversation = "--conversation";
constexpr const char* kTokenizer = "--tokenizer";
constexpr const char* kPixelsMax = "--image-pixels-max";
/// Of those about data, what one conversation needs.
constexpr std::string_view kConversationFlags[] = {
    kTokenizer,    kPixelsMax,           "--max-history-images", "--seq-len",
    "--video-fps", "--video-frames-min", "--video-frames-max",   "--video-pixels-max",
};

constexpr Flag kFlags[] = {
    {.name = "--from",
     .help = "the --out of a training (its newest checkpoint), a checkpoint, or a folder as "
             "transformers saves it",
     .required = true},
    {.name = kConversation,
     .help = "JSON file of one conversation, as training data has it; or a file of JSON lines, "
             "each answered in a line",
     .required = true},
    {.name = "--vggt", .help = "where VGGT's weights are, or off (what the training said)"},
    {.name = "--tokens", .help = "tokens of an answer at most (256)"},
    {.name = "--temperature",
     .help = "below 1 what is probable becomes more so; 0: always the most probable token (0)"},
    {.name = "--top-k", .help = "only so many of the most probable tokens; 0: all (0)"},
    {.name = "--top-p", .help = "the fewest tokens that have this share together (1)"},
    {.name = "--seed", .help = "the same one gives the same answers (1337)"},
};

struct GenerateOrder {
  fs::path conversation;
  std::int64_t tokens = 0;
  std::uint64_t seed = 0;
  ChoosingRule rule;
};

GenerateOrder read_order(FlagReader& reader) {
  GenerateOrder order;
  order.conversation = reader.text(kConversation);
  order.tokens = reader.whole("--tokens", {.value = "256"}, {1, kTokensMax});
  order.seed =
      static_cast<std::uint64_t>(reader.whole("--seed", {.value = "1337"}, {0, kCountMax}));
  order.rule.temperature =
      reader.real("--temperature", {.value = "0"}, {0, kTemperatureMax},
                  "it must be a number from 0 to " + number_text(kTemperatureMax));
  order.rule.top_k = reader.whole("--top-k", {.value = "0"}, {0, kCountMax});
  order.rule.top_p = reader.real("--top-p", {.value = "1"}, {std::nextafter(0.0, 1.0), 1},
                                 "it must be a number greater than 0, and 1 at most");
  return order;
}

/// Once a signal has asked for it.
GenerateEnd stopped() {
  if (stop_signal() == 0) return std::nullopt;
  return Failure{.exit_code = exit_code::kInterrupted,
                 .reason = "Interrupted",
                 .message = asked_by(stop_signal())};
}

/// What an answer may consist of: no pictures, and no turn of its own.
std::vector<bool> may_choose(const QwenConfig& config, const ChatIds& ids) {
  std::vector<bool> may(static_cast<std::size_t>(config.text.vocabulary), true);
  for (const auto id :
       {ids.turn_begin, ids.vision.begin, ids.vision.end, ids.vision.image, ids.vision.video})
    may[static_cast<std::size_t>(id)] = false;
  return may;
}

at::ScalarType type_of(HostTensor::Type type) {
  if (type == HostTensor::Type::uint8) return at::kByte;
  return type == HostTensor::Type::int32 ? at::kInt : at::kFloat;
}

class Answering {
 public:
  Answering(const GenerateOrder& order, const TrainedQwen& trained, ConversationPrompts prompts,
            at::Device device)
      : order_(order),
        trained_(trained),
        prompts_(std::move(prompts)),
        device_(device),
        ids_(chat_ids(trained.config.qwen)),
        chooser_(order.rule, may_choose(trained.config.qwen, ids_)) {}

  /// Of the whole file: its text as it comes.
  GenerateEnd answer_alone(std::string_view text) {
    TextOutput output(STDOUT_FILENO);
    auto end = answer(text, order_.conversation.string(),
                      [&](const std::string& piece) { return output.write(piece); });
    const auto ended = output.end_text();
    if (end) return end;
    return ended ? std::nullopt : unwritten(ended.error());
  }

  /// One JSON object a line.
  GenerateEnd answer_lines(std::string_view lines) {
    std::int64_t number = 0;
    while (!lines.empty()) {
      const auto line = lines.substr(0, lines.find('\n'));
      lines.remove_prefix(std::min(lines.size(), line.size() + 1));
      ++number;
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      std::string text;
      auto end = answer(line, order_.conversation.string() + " line " + std::to_string(number),
                        [&](const std::string& piece) -> Result<void> {
                          text += piece;
                          return {};
                        });
      if (end) return end;
      nlohmann::ordered_json document;
      document["answer"] = text;
      const auto written =
          TextOutput(STDOUT_FILENO).write(document.dump(-1, ' ', false, kReplace) + "\n");
      if (!written) return unwritten(written.error());
    }
    return std::nullopt;
  }

  /// For people, and for whoever measures.
  std::string speed_text() const {
    const auto seconds = [](Clock::duration time) {
      return std::chrono::duration<double>(time).count();
    };
    char text[200];
    std::snprintf(text, sizeof text,
                  "%lld tokens in %.2f s | %.1f tokens/s | %lld tokens of conversation read in "
                  "%.2f s",
                  static_cast<long long>(made_), seconds(making_),
                  seconds(making_) > 0 ? static_cast<double>(made_) / seconds(making_) : 0,
                  static_cast<long long>(read_), seconds(reading_));
    return text;
  }

 private:
  using Show = std::function<Result<void>(const std::string&)>;
  static constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;

  static GenerateEnd unwritten(const Error& error) {
    return Failure{.exit_code = exit_code::kInputOutput,
                   .reason = "OutNotWritable",
                   .message = describe(error)};
  }
  static GenerateEnd refused(const Error& error, const std::string& name) {
    return bad_data(Error{.code = Code::invalid,
                          .message = describe(error),
                          .subject = std::string(kConversation) + " " + name});
  }

  GenerateEnd answer(std::string_view text, const std::string& name, const Show& show) {
    auto open = open_conversation_from(text);
    if (!open) return refused(open.error(), name);
    auto host = prompts_.batch(std::move(*open), order_.conversation.parent_path());
    if (!host) return refused(host.error(), name);
    Batch batch;
    for (auto& tensor : host->tensors)
      batch.push_back(
          at::from_blob(tensor.bytes.data(), tensor.shape, type_of(tensor.type)).to(device_));
    const auto begun = Clock::now();
    Answer answer(*trained_.model, trained_.config, batch);
    const auto read = Clock::now();
    reading_ += read - begun;
    read_ += answer.tokens();
    auto end = go_on(answer, show);
    making_ += Clock::now() - read;
    ++answers_;
    return end;
  }

  GenerateEnd go_on(Answer& answer, const Show& show) {
    for (std::int64_t position = 0; position < order_.tokens; ++position) {
      if (auto stop = stopped()) return stop;
      const auto logits = answer.logits();
      const std::span values(logits.const_data_ptr<float>(),
                             static_cast<std::size_t>(logits.numel()));
      const auto token = chooser_.choose(
          values, uniform_of(order_.seed, answers_, static_cast<std::uint32_t>(position)));
      if (!token) return bad_data(token.error());
      ++made_;
      if (*token == ids_.turn_end) return std::nullopt;
      const auto id = static_cast<std::int32_t>(*token);
      if (const auto shown = show(prompts_.text({&id, 1})); !shown) return unwritten(shown.error());
      answer.go_on(*token);
    }
    return std::nullopt;
  }

  const GenerateOrder& order_;
  const TrainedQwen& trained_;
  ConversationPrompts prompts_;
  at::Device device_;
  ChatIds ids_;
  TokenChooser chooser_;
  std::uint64_t answers_ = 0;
  std::int64_t made_ = 0, read_ = 0;
  Clock::duration reading_{}, making_{};
};

/// Flags win over what stands beside the weights.
ConversationOptions options_of(FlagReader& reader, const TrainedQwen& trained) {
  auto options = read_conversation_flags(reader);
  const auto folder = trained.folder();
  if (!reader.is_given(kTokenizer)) options.tokenizer = folder.string();
  const auto text = read_small_file(folder / kPreprocessorFile, kPreprocessorBytesMax);
  const auto bounds = text ? pixel_bounds_from(*text) : std::nullopt;
  if (bounds && !reader.is_given(kPixelsMax)) options.pixels_max = bounds->max;
  const auto of_videos = read_small_file(folder / kVideoPreprocessorFile, kPreprocessorBytesMax);
  const auto said = of_videos ? seen_frames_from(*of_videos) : std::nullopt;
  if (!said) return options;
  auto& seen = options.seen;
  seen.pixels_min = said->pixels_min;
  if (!reader.is_given("--video-fps")) seen.of_second = said->of_second;
  if (!reader.is_given("--video-frames-min")) seen.min = said->min;
  if (!reader.is_given("--video-frames-max")) seen.max = said->max;
  if (!reader.is_given("--video-pixels-max")) seen.pixels_max = said->pixels_max;
  return options;
}

bool is_of_lines(const fs::path& file) { return file.extension() == ".jsonl"; }

GenerateEnd generate(const CommandCall& call) {
  FlagReader reader(call.flags);
  const auto order = read_order(reader);
  if (reader.error()) return bad_config(*reader.error());
  std::optional<std::string> vggt;
  if (reader.is_given("--vggt")) vggt = reader.given("--vggt");
  const auto trained =
      open_trained_qwen({.from = call.flags.find("--from")->second,
                         .vggt = vggt,
                         .options = {.precision = call.precision, .gpu = call.gpu}});
  if (auto stop = stopped()) return stop;
  if (!trained) return bad_data(trained.error());
  const auto options = options_of(reader, *trained);
  if (reader.error()) return bad_config(*reader.error());
  auto prompts = ConversationPrompts::open(conversation_shape_of(trained->config), options);
  if (!prompts) return bad_data(prompts.error());
  const auto text = read_small_file(order.conversation, kConversationBytesMax);
  if (!text)
    return bad_data(
        Error{.code = Code::invalid, .message = describe(text.error()), .subject = kConversation});
  Answering answering(order, *trained, std::move(*prompts), device_of(call.gpu));
  auto end = is_of_lines(order.conversation) ? answering.answer_lines(*text)
                                             : answering.answer_alone(*text);
  if (end) return end;
  say_error(answering.speed_text());
  return std::nullopt;
}

std::span<const Flag> all_flags() {
  static const auto kAll = [] {
    std::vector<Flag> flags(std::begin(kFlags), std::end(kFlags));
    for (const auto& flag : conversation_flags()) {
      if (std::ranges::find(kConversationFlags, std::string_view(flag.name)) !=
          std::ranges::end(kConversationFlags))
        flags.push_back(flag);
    }
    return flags;
  }();
  return kAll;
}

}  // namespace

std::span<const WorkloadCommand> qwen_vggt_commands() {
  static const WorkloadCommand kCommands[] = {
      {.name = "generate",
       .title = "Says what a trained Qwen2.5-VL answers, of pictures, videos and text",
       .flags = all_flags(),
       .run = generate,
       .prints_result = true}};
  return kCommands;
}

}  // namespace tj::trainer
