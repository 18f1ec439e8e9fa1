#include "trainer/workloads/gpt2/gpt2_workload.h"

#include <cmath>

#include "trainer/data/bpe_decode.h"
#include "trainer/data/tokenizer.h"
#include "trainer/process/durable_file.h"
#include "trainer/workload/made_up_samples.h"
#include "trainer/workloads/gpt2/sample_command.h"
#include "trainer/workloads/gpt2/token_samples.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kModelExtentMax = 1'000'000;

constexpr Flag kFlags[] = {
    {.name = "--vocabulary", .help = "tokens the model knows (what the data says)"},
    {.name = "--seq-len", .help = "tokens in one sample (preset)"},
    {.name = "--layers", .help = "layers of the model (preset)"},
    {.name = "--heads", .help = "attention heads; must divide the width (preset)"},
    {.name = "--width", .help = "width of the model (preset)"},
    {.name = "--gelu",
     .help = "its form: tanh, as GPT-2 has it, or erf (tanh; what --init-from has)"},
    {.name = "--dropout", .help = "of embeddings and of both branches of each layer (0)"},
    {.name = "--ignore-token", .help = "a token that doesn't count as a target, such as padding"},
};

/// Whether the data can be read at all, and has a sample.
Error too_short(const std::string& name, const TokenSource& source, std::int64_t context) {
  return {.code = Code::invalid,
          .message = "holds " + grouped(source.token_count()) + " tokens in " +
                     std::to_string(source.file_count()) + " files; one sequence of --seq-len " +
                     std::to_string(context) + " needs " + grouped(context + 1),
          .subject = name};
}

Setting tokens_row(const TokenSource& source) {
  const std::string files = std::to_string(source.file_count()) + " files";
  return {"tokens", grouped(source.token_count()),
          "computed: " + (source.format() == TokenFormat::text
                              ? "bytes of " + files + ", one more after each"
                              : files + ", " + to_string(source.format()))};
}

}  // namespace

Result<void> Gpt2Workload::read_init(const std::string& path) {
  auto init = read_initial_model(path);
  if (!init) return init.error();
  init_ = std::move(*init);
  return {};
}

void Gpt2Workload::configure(FlagReader& reader) {
  const Gpt2Config base = init_ ? init_->model : gpt2_model(preset_);
  const std::string origin = init_ ? "init-from" : "preset " + std::string(preset_.name);
  const auto otherwise = [&](std::int64_t value) {
    return Otherwise{.value = std::to_string(value), .origin = origin};
  };
  const Range<std::int64_t> extent{1, kModelExtentMax};
  config_.layers = reader.whole("--layers", otherwise(base.layers), extent);
  if (base.heads == 0 && !reader.is_given("--heads"))
    reader.fail("--heads", "", "no config.json beside " + init_->path.string() + " says it");
  config_.heads = reader.whole("--heads", otherwise(base.heads), extent);
  config_.width = reader.whole("--width", otherwise(base.width), extent);
  config_.context = reader.whole("--seq-len", otherwise(base.context), extent);
  if (config_.width % config_.heads != 0) {
    reader.fail("--heads", std::to_string(config_.heads),
                "it must divide the width, " + std::to_string(config_.width));
  }
  const bool knows_vocabulary = init_ || reader.is_given("--vocabulary");
  config_.vocabulary =
      knows_vocabulary ? reader.whole("--vocabulary", otherwise(base.vocabulary), extent) : 0;
  config_.gelu = read_gelu(reader);
  if (init_) {
    check_against_init(reader);
    tokenizer_vocabulary_ = init_->tokenizer_vocabulary;
  }
  training_.dropout =
      reader.real("--dropout", {.value = "0"}, {0, std::nextafter(1.0, 0.0)}, kShareRule);
  if (reader.is_given("--ignore-token"))
    training_.ignored_token = reader.whole("--ignore-token", {}, {0, kModelExtentMax});
}

Gelu Gpt2Workload::read_gelu(FlagReader& reader) const {
  const bool is_said = init_ && init_->has_config;
  if (!is_said || reader.is_given("--gelu"))
    return reader.choice("--gelu", to_string(Gelu::tanh), "tanh or erf", gelu_from);
  reader.note("--gelu", to_string(init_->model.gelu), "init-from");
  return init_->model.gelu;
}

/// The flags that only repeat what the weights of --init-from are.
void Gpt2Workload::check_against_init(FlagReader& reader) const {
  const Gpt2Config& of_init = init_->model;
  const std::tuple<const char*, std::int64_t, std::int64_t> values[] = {
      {"--layers", config_.layers, of_init.layers},
      {"--width", config_.width, of_init.width},
      {"--seq-len", config_.context, of_init.context},
      {"--heads", config_.heads, of_init.heads > 0 ? of_init.heads : config_.heads},
      {"--vocabulary", config_.vocabulary, of_init.vocabulary}};
  for (const auto& [name, value, expected] : values) {
    if (value != expected)
      reader.fail(name, std::to_string(value),
                  init_->path.string() + " has " + std::to_string(expected));
  }
  if (init_->has_config && config_.gelu != of_init.gelu)
    reader.fail("--gelu", to_string(config_.gelu),
                init_->path.string() + " has " + to_string(of_init.gelu));
}

OpenedData Gpt2Workload::open_data(const DataPaths& data) {
  auto source =
      TokenSource::open(data.paths, data.flag, data.is_eval ? TokenPart::val : TokenPart::train);
  if (!source) return {.source = {}, .failure = bad_data(source.error())};
  const std::string name = data.flag + " " + data.paths.front();
  auto failure = data.is_eval ? check_eval(*source, name) : settle(*source);
  if (!failure && source->token_count() <= config_.context)
    failure = bad_data(too_short(name, *source, config_.context));
  if (!failure && !data.is_eval) failure = take_tokenizer(*source, data.paths);
  if (failure) return {.source = {}, .failure = std::move(failure)};
  const bool says_vocabulary = !data.is_eval && source->vocabulary() > 0;
  source->require_ids_below(says_vocabulary ? source->vocabulary() : config_.vocabulary);
  return {.source = std::make_unique<TokenSamples>(std::move(*source), config_.context,
                                                   training_.ignored_token)};
}

HeldOut Gpt2Workload::held_out(const std::vector<std::string>& data) const {
  HeldOut found;
  std::int64_t tokens = 0;
  for (const auto& path : data) {
    const auto of_path = held_out_tokens(path);
    if (of_path > 0) found.paths.push_back(path);
    tokens += of_path;
  }
  if (found.paths.empty() || tokens > config_.context) return found;
  return {.why_not = "the val part of " + found.paths.front() + " holds " + grouped(tokens) +
                     " tokens; one sequence needs " + grouped(config_.context + 1)};
}

OpenedData Gpt2Workload::make_up_data() {
  if (config_.vocabulary == 0)
    return {.source = {},
            .failure = bad_config(Error{.code = Code::invalid,
                                        .message = "is missing, and no --data says it; GPT-2's is "
                                                   "50257",
                                        .subject = "--vocabulary"})};
  std::vector<MadeUpTensor> tokens{{.type = HostTensor::Type::int32,
                                    .shape = {config_.context + 1},
                                    .below = config_.vocabulary}};
  return {.source = std::make_unique<MadeUpSamples>(std::move(tokens), config_.context)};
}

/// What is trained on completes the model.
std::optional<Failure> Gpt2Workload::settle(const TokenSource& source) {
  if (const auto settled = settle_vocabulary(source.vocabulary()); !settled)
    return bad_config(settled.error());
  settings_.push_back(tokens_row(source));
  return std::nullopt;
}

/// So that whoever has a checkpoint can read and write its tokens.
std::optional<Failure> Gpt2Workload::take_tokenizer(const TokenSource& source,
                                                    const std::vector<std::string>& paths) {
  if (source.format() == TokenFormat::text || source.tokenizer() == byte_tokenizer().name)
    return std::nullopt;
  std::vector<std::filesystem::path> places(paths.begin(), paths.end());
  if (init_) places.push_back(init_->path);
  for (const auto& place : places) {
    const auto file = tokenizer_file_beside(place);
    if (!file) continue;
    auto text = read_small_file(*file, kTokenizerBytesMax);
    if (!text) return bad_data(text.error());
    files_[kTokenizerFile] = std::move(*text);
    settings_.push_back({"tokenizer", file->string(), "beside the data; in each checkpoint, too"});
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Failure> Gpt2Workload::check_eval(const TokenSource& source,
                                                const std::string& name) const {
  if (source.vocabulary() <= config_.vocabulary) return std::nullopt;
  return bad_data(Error{.code = Code::invalid,
                        .message = "is of a vocabulary of " + std::to_string(source.vocabulary()) +
                                   "; the model's is " + std::to_string(config_.vocabulary),
                        .subject = name});
}

Result<void> Gpt2Workload::settle_vocabulary(std::int64_t data_vocabulary) {
  const auto wrong = [](std::string message) {
    return Error{.code = Code::invalid, .message = std::move(message), .subject = "--vocabulary"};
  };
  auto& vocabulary = config_.vocabulary;
  if (vocabulary == 0 && data_vocabulary == 0) {
    return wrong("is missing, and the files of --data don't say it; GPT-2's is 50257");
  }
  if (vocabulary == 0) {
    vocabulary = data_vocabulary;
    settings_.push_back({"vocabulary", std::to_string(vocabulary), "computed from the data"});
  }
  if (vocabulary < data_vocabulary) {
    return wrong("is " + std::to_string(vocabulary) + "; it must be at least that of the data, " +
                 std::to_string(data_vocabulary));
  }
  if (data_vocabulary > 0) tokenizer_vocabulary_ = data_vocabulary;
  return {};
}

std::unique_ptr<Model> Gpt2Workload::make_model(const ModelOptions& options,
                                                const ModelKeeper& keeper) const {
  return std::make_unique<Gpt2>(config_, training_, options, keeper);
}

SampleWords Gpt2Workload::words() const {
  return {.unit = {.name = "tokens", .short_name = "tok"},
          .units = config_.context,
          .units_origin = "seq-len",
          .counted = "targets"};
}

/// PaLM, arXiv 2204.02311, appendix B, as in nanoGPT: N without the embeddings of positions.
SampleCost Gpt2Workload::cost() const {
  const auto n = static_cast<double>(parameter_count(config_) - config_.context * config_.width);
  const double of_token = 6.0 * n + 12.0 * static_cast<double>(config_.layers) *
                                        static_cast<double>(config_.width) *
                                        static_cast<double>(config_.context);
  return {.flops = of_token * static_cast<double>(config_.context),
          .formula = "6 x parameters + 12 x layers x width x seq-len",
          .bytes = (config_.context + 1) * static_cast<std::int64_t>(sizeof(std::int32_t))};
}

std::string Gpt2Workload::nothing_counts() const {
  return "every target is the token " + std::to_string(training_.ignored_token.value_or(0)) +
         " of --ignore-token";
}

ModelShape Gpt2Workload::shape() const {
  return {{"layers", "--layers", config_.layers},
          {"heads", "--heads", config_.heads},
          {"width", "--width", config_.width},
          {"context", "--seq-len", config_.context},
          {"vocabulary", "--vocabulary", config_.vocabulary},
          {"gelu", "--gelu", static_cast<std::int64_t>(config_.gelu), kGeluNames}};
}

Result<TensorReader> Gpt2Workload::open_initial_weights(const std::string& path) const {
  std::vector<std::string> names;
  for (const auto& tensor : tensors()) names.push_back(tensor.name);
  return trainer::open_initial_weights(path, names);
}

WorkloadEntry gpt2_entry() {
  return {.name = "gpt2",
          .title = "a GPT-2 on text or tokens",
          .data_help =
              "folder of text files, or tokens: a prepared folder, a folder of token "
              "files, or one of them; may be given several times",
          .presets = gpt2_presets(),
          .flags = kFlags,
          .commands = gpt2_commands(),
          .make = [](const Preset& preset) -> std::unique_ptr<Workload> {
            return std::make_unique<Gpt2Workload>(preset);
          }};
}

}  // namespace tj::trainer
