#include "trainer/workloads/gpt2/sample_command.h"

#include <torch/types.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>

#include "trainer/process/early_stop.h"
#include "trainer/process/lines.h"
#include "trainer/process/stop_request.h"
#include "trainer/workload/flag_reader.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workload/text_output.h"
#include "trainer/workload/token_chooser.h"
#include "trainer/workloads/gpt2/generation.h"
#include "trainer/workloads/gpt2/prompt.h"
#include "trainer/workloads/gpt2/sample_tokens.h"
#include "trainer/workloads/gpt2/trained_gpt2.h"

namespace tj::trainer {
namespace {
using Clock = std::chrono::steady_clock;
using SampleEnd = std::optional<Failure>;  // absent: it is done

constexpr std::int64_t kTokensMax = 1'000'000;
constexpr std::int64_t kSamplesMax = 1'000'000;
constexpr double kTemperatureMax = 100;
constexpr const char* kBetweenSamples = "---\n";

constexpr Flag kFlags[] = {
    {.name = "--from",
     .help = "the --out of a training (its newest checkpoint), a checkpoint, a folder as "
             "transformers saves it, or a .safetensors file",
     .required = true},
    {.name = "--prompt", .help = "the text to go on with (none: a text from its begin)"},
    {.name = "--prompt-file", .help = "the same from a file; -: from standard input"},
    {.name = "--tokens", .help = "tokens of a sample at most (200)"},
    {.name = "--temperature",
     .help = "below 1 what is probable becomes more so; 0: always the most probable token (1)"},
    {.name = "--top-k", .help = "only so many of the most probable tokens; 0: all (0)"},
    {.name = "--top-p", .help = "the fewest tokens that have this share together (1)"},
    {.name = "--seed", .help = "the same one gives the same samples (1337)"},
    {.name = "--samples", .help = "how many, one after the other (1)"},
    {.name = "--tokenizer",
     .help = "tokenizer.json, or a folder with vocab.json and merges.txt (tokenizer.json beside "
             "the weights, or bytes)"},
};

struct SampleOrder {
  std::string prompt;
  std::int64_t tokens = 0;
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
  ChoosingRule rule;
};

Result<SampleOrder> read_order(const Flags& flags) {
  FlagReader reader(flags);
  SampleOrder order;
  order.tokens = reader.whole("--tokens", {.value = "200"}, {1, kTokensMax});
  order.samples = reader.whole("--samples", {.value = "1"}, {1, kSamplesMax});
  order.seed =
      static_cast<std::uint64_t>(reader.whole("--seed", {.value = "1337"}, {0, kCountMax}));
  order.rule.temperature =
      reader.real("--temperature", {.value = "1"}, {0, kTemperatureMax},
                  "it must be a number from 0 to " + number_text(kTemperatureMax));
  order.rule.top_k = reader.whole("--top-k", {.value = "0"}, {0, kCountMax});
  order.rule.top_p = reader.real("--top-p", {.value = "1"}, {std::nextafter(0.0, 1.0), 1},
                                 "it must be a number greater than 0, and 1 at most");
  if (reader.error()) return *reader.error();
  auto prompt = read_prompt(flags);
  if (!prompt) return prompt.error();
  order.prompt = std::move(*prompt);
  return order;
}

std::optional<std::string> text_if_given(const Flags& flags, const char* name) {
  const auto found = flags.find(name);
  return found == flags.end() ? std::nullopt : std::optional(found->second);
}

/// Once a signal has asked for it.
SampleEnd stopped(const std::string& when) {
  if (stop_signal() == 0) return std::nullopt;
  return Failure{.exit_code = exit_code::kInterrupted,
                 .reason = "Interrupted",
                 .message = asked_by(stop_signal()) + when};
}

SampleEnd unwritten(const Error& error) {
  return Failure{
      .exit_code = exit_code::kInputOutput, .reason = "OutNotWritable", .message = describe(error)};
}

class Samples {
 public:
  Samples(const SampleOrder& order, const TrainedGpt2& trained, const SampleTokens& tokens,
          at::Device device)
      : order_(order),
        trained_(trained),
        tokens_(tokens),
        device_(device),
        chooser_(order.rule, tokens.may_choose) {
    prompt_ = tokens.encode(order.prompt);
    // As between two documents of the data: a text begins after the end of another one.
    if (prompt_.empty()) prompt_.push_back(tokens.tokenizer.document_end);
  }

  SampleEnd print() {
    const auto size = static_cast<std::int64_t>(prompt_.size());
    if (size > trained_.config.context)
      say_error("the prompt has " + std::to_string(size) + " tokens; of these the last " +
                std::to_string(trained_.config.context) + ", the context of the model, count");
    for (std::int64_t sample = 0; sample < order_.samples; ++sample) {
      if (sample > 0)
        if (const auto shown = output_.write(kBetweenSamples); !shown)
          return unwritten(shown.error());
      auto end = print(sample);
      const auto ended = output_.end_text();
      if (end) return end;
      if (!ended) return unwritten(ended.error());
    }
    return std::nullopt;
  }

  /// For people, and for whoever measures.
  std::string speed_text() const {
    const auto seconds = [](Clock::duration time) {
      return std::chrono::duration<double>(time).count();
    };
    char text[160];
    std::snprintf(text, sizeof text,
                  "%lld tokens in %.2f s | %.1f tokens/s | prompt of %zu tokens read in %.2f s",
                  static_cast<long long>(made_), seconds(making_),
                  seconds(making_) > 0 ? static_cast<double>(made_) / seconds(making_) : 0,
                  prompt_.size(), seconds(reading_));
    return text;
  }

 private:
  SampleEnd print(std::int64_t sample) {
    if (const auto shown = output_.write(order_.prompt); !shown) return unwritten(shown.error());
    Generation generation(*trained_.model, trained_.config, device_);
    const auto begun = Clock::now();
    auto logits = generation.next(prompt_);
    const auto read = Clock::now();
    reading_ += read - begun;
    auto end = go_on(sample, generation, std::move(logits));
    making_ += Clock::now() - read;
    return end;
  }

  SampleEnd go_on(std::int64_t sample, Generation& generation, at::Tensor logits) {
    for (std::int64_t position = 0; position < order_.tokens; ++position) {
      if (auto stop = stopped(" after " + std::to_string(position) + " of " +
                              std::to_string(order_.tokens) + " tokens"))
        return stop;
      if (position > 0) logits = generation.next({&last_, 1});
      const std::span values(logits.const_data_ptr<float>(),
                             static_cast<std::size_t>(logits.numel()));
      const auto token =
          chooser_.choose(values, uniform_of(order_.seed, static_cast<std::uint64_t>(sample),
                                             static_cast<std::uint32_t>(position)));
      if (!token) return bad_data(token.error());
      ++made_;
      last_ = *token;
      if (last_ == tokens_.tokenizer.document_end) return std::nullopt;
      if (const auto shown = output_.write(tokens_.bytes.find(last_).value_or("")); !shown)
        return unwritten(shown.error());
    }
    return std::nullopt;
  }

  const SampleOrder& order_;
  const TrainedGpt2& trained_;
  const SampleTokens& tokens_;
  at::Device device_;
  TokenChooser chooser_;
  TextOutput output_{STDOUT_FILENO};
  std::vector<std::int64_t> prompt_;
  std::int64_t last_ = 0;
  std::int64_t made_ = 0;
  Clock::duration reading_{}, making_{};
};

SampleEnd sample(const CommandCall& call) {
  const auto order = read_order(call.flags);
  if (!order) return bad_config(order.error());
  const std::string in_vain = "; nothing is written";
  auto trained = open_trained_gpt2({.from = call.flags.find("--from")->second,
                                    .preset = text_if_given(call.flags, "--model"),
                                    .options = {.precision = call.precision, .gpu = call.gpu}});
  if (auto stop = stopped(in_vain)) return stop;
  if (!trained) return bad_data(trained.error());
  std::optional<std::filesystem::path> named;
  if (const auto tokenizer = text_if_given(call.flags, "--tokenizer")) named = *tokenizer;
  const auto tokens = open_sample_tokens({.named = named,
                                          .weights = trained->weights,
                                          .vocabulary = trained->config.vocabulary,
                                          .tokenizer_vocabulary = trained->tokenizer_vocabulary});
  if (auto stop = stopped(in_vain)) return stop;
  if (!tokens) return bad_data(tokens.error());
  Samples samples(*order, *trained, *tokens, device_of(call.gpu));
  if (auto end = samples.print()) return end;
  say_error(samples.speed_text());
  return std::nullopt;
}

}  // namespace

std::span<const WorkloadCommand> gpt2_commands() {
  static constexpr WorkloadCommand kCommands[] = {
      {.name = "sample",
       .title = "Goes on with a text by a trained GPT-2",
       .flags = kFlags,
       .run = sample,
       .prints_result = true}};
  return kCommands;
}

}  // namespace tj::trainer
