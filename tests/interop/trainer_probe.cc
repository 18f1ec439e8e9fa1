// Answers what tests/interop/run can't ask the trainer itself:
//
//   trainer_probe logits MODEL TOKENS SAMPLES LOGITS        logits (float32) for int32 tokens
//   trainer_probe taehv PRESET WEIGHTS FRAMES ANSWER        latents, frames, gradients (float32)
//   trainer_probe adversary PRESET WEIGHTS CLIPS ANSWER     what a discriminator says (float32)
//   trainer_probe pi0 PRESET WEIGHTS BATCH ANSWER           tokens, loss, actions, gradients
//   trainer_probe samples SEED TOKEN_COUNT SEQUENCE COUNT   where the first samples begin
#include <torch/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "tests/interop/probing.h"
#include "trainer/checkpoint/training_state.h"
#include "trainer/train/sampler.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workloads/gpt2/gpt2.h"
#include "trainer/workloads/gpt2/hugging_face.h"
#include "trainer/workloads/gpt2/token_samples.h"
#include "trainer/workloads/pi0/pi0.h"
#include "trainer/workloads/pi0/pi0_weights.h"
#include "trainer/workloads/taehv/taehv.h"
#include "trainer/workloads/taehv/taehv_weights.h"

namespace tj::trainer {
namespace {

at::Tensor read_tokens(const char* path, std::int64_t samples) {
  const auto bytes = bytes_of(path);
  const auto count = static_cast<std::int64_t>(bytes.size() / sizeof(std::int32_t));
  return torch::from_blob(const_cast<char*>(bytes.data()), {samples, count / samples},
                          torch::kInt32)
      .to(torch::kInt64);
}

std::vector<NamedTensor> named_tensors(const std::vector<TensorSpec>& specs,
                                       const std::vector<at::Tensor>& tensors) {
  std::vector<NamedTensor> named;
  for (std::size_t index = 0; index < specs.size(); ++index)
    append_tensors(named, {specs[index].name}, {tensors[index]});
  return named;
}

int write_logits(const char* const* arguments) {
  const auto found = read_initial_model(arguments[0]);
  if (!found) return fail(found.error());
  const Gpt2 model(found->model, {}, {});
  const auto tensors = named_tensors(gpt2_tensors(found->model), model.tensors());
  std::vector<std::string> names;
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  const auto reader = open_initial_weights(arguments[0], names);
  if (!reader) return fail(reader.error());
  const auto read = fill(*make_single_communicator(), tensors, *reader, /*readers=*/1);
  if (!read) return fail(read.error());
  const at::NoGradGuard no_grad;
  const auto tokens = read_tokens(arguments[1], std::atoll(arguments[2]));
  write_values(arguments[3], {model.logits(tokens)});
  return 0;
}

at::Tensor streamed(TaehvStream stream, const at::Tensor& inputs) {
  std::vector<at::Tensor> made;
  for (std::int64_t t = 0; t < inputs.size(1); ++t)
    for (const auto& output : stream.push(inputs.select(1, t))) made.push_back(output);
  for (const auto& output : stream.finish()) made.push_back(output);
  return at::stack(made, 1);
}

Result<void> read_weights(const TaehvConfig& config, const std::vector<NamedTensor>& tensors,
                          const char* path) {
  const auto reader = open_taehv_weights(path, taehv_layers(config).tensors);
  if (!reader) return reader.error();
  return fill(*make_single_communicator(), tensors, *reader, /*readers=*/1);
}

Result<TaehvConfig> preset_named(const std::string& name) {
  const auto presets = taehv_presets();
  const auto found = std::ranges::find(presets, name, &Preset::name);
  if (found == presets.end())
    return Error{.code = Code::invalid, .message = "no preset", .subject = name};
  return taehv_model(*found);
}

/// Of two clips of two latents each, which have 2 x 2 places.
int answer_taehv(const char* const* arguments) {
  const auto preset = preset_named(arguments[0]);
  if (!preset) return fail(preset.error());
  const auto& config = *preset;
  const Taehv model(config, {.squared = 1, .absolute = 0.5}, {});
  const auto tensors = named_tensors(taehv_layers(config).tensors, model.tensors());
  if (const auto read = read_weights(config, tensors, arguments[1]); !read)
    return fail(read.error());
  auto bytes = bytes_of(arguments[2]);
  const auto side = 2 * config.pixels_of_latent();
  const auto pixels = torch::from_blob(
      bytes.data(), {2, 2 * config.frames_of_latent(), kImageChannels, side, side}, torch::kByte);
  std::vector<at::Tensor> answers;
  {
    const at::NoGradGuard no_gradients;
    const auto frames = pixels.to(at::kFloat) / 255;
    const auto latents = model.encode(frames);
    using Side = TaehvStream::Side;
    answers = {latents, model.decode(latents), streamed(TaehvStream(model, Side::encoder), frames),
               streamed(TaehvStream(model, Side::decoder), latents)};
  }
  const auto loss = model.pass({pixels}, {}).loss;
  for (const auto& gradient : torch::autograd::grad({loss}, model.tensors()))
    answers.push_back(gradient);
  write_values(arguments[3], answers);
  return 0;
}

/// Of two clips of six frames of 16 x 16 pixels and two latents.
int answer_adversary(const char* const* arguments) {
  const auto preset = preset_named(arguments[0]);
  if (!preset) return fail(preset.error());
  const auto specs = discriminator_tensors(*preset);
  const auto tensors = initial_tensors(specs, {}, {});
  const auto named = named_tensors(specs, tensors);
  auto catalog = TensorCatalog::open_file(arguments[1]);
  if (!catalog) return fail(catalog.error());
  const auto read = fill(*make_single_communicator(), named, reader_of(std::move(*catalog)), 1);
  if (!read) return fail(read.error());
  const auto bytes = bytes_of(arguments[2]);
  const auto all = torch::from_blob(const_cast<char*>(bytes.data()),
                                    {static_cast<std::int64_t>(bytes.size() / sizeof(float))});
  constexpr std::int64_t kValues = 2 * 6 * 3 * 16 * 16;
  const auto latents = all.narrow(0, 2 * kValues, all.numel() - 2 * kValues).view({2, 2, -1, 2, 2});
  const auto clip = [&](std::int64_t at) {
    return all.narrow(0, at * kValues, kValues).view({2, 6, 3, 16, 16});
  };
  const StepMemory memory({.name = "none", .rows = 1, .row_bytes = 1}, at::kCPU);
  const SeenClips clips{.real = clip(0), .made = clip(1), .latents = latents};
  const Discriminator discriminator(tensors);
  const auto context = latents.mean(1).to(at::kHalf).to(at::kFloat).repeat_interleave(2, /*dim=*/0);
  std::vector<at::Tensor> answers{Adversary(tensors, 0, memory).correction(clips),
                                  discriminator.scores(grouped_frames(clips.made), context)};
  const auto scores = discriminator.scores_in_training(grouped_frames(clips.made), context);
  answers.push_back(scores.detach());
  (scores - 1).square().mean().backward();
  for (std::size_t index = 0; index < specs.size(); ++index)
    answers.push_back(specs[index].kind == TensorKind::trained ? tensors[index].grad()
                                                               : tensors[index]);
  write_values(arguments[3], answers);
  return 0;
}

std::vector<at::Tensor> pi0_answers(const Pi0& model, std::map<std::string, at::Tensor> given) {
  const Pi0Batch batch{.observation = {.images = given["images"],
                                       .image_mask = given["image_mask"].ne(0),
                                       .tokens = given["tokens"].to(at::kLong),
                                       .token_mask = given["token_mask"].ne(0),
                                       .state = given["state"]},
                       .actions = given["actions"],
                       .numbers = {}};
  const FlowDraw draw{.noise = given["noise"], .time = given["time"]};
  const auto loss = model.loss(batch, draw) / static_cast<double>(batch.actions.numel());
  loss.backward();
  const at::NoGradGuard no_gradients;
  const auto noisy = noisy_actions(batch.actions, draw);
  return {model.prefix(batch.observation),
          model.suffix(batch.observation.state, noisy, draw.time).tokens, loss,
          model.sampled_actions(batch.observation, draw.noise)};
}

/// Gradients by name, of what has one.
int answer_pi0(const char* const* arguments) {
  const auto presets = pi0_presets();
  const auto found = std::ranges::find(presets, std::string_view(arguments[0]), &Preset::name);
  if (found == presets.end())
    return fail({.code = Code::invalid, .message = "no preset", .subject = arguments[0]});
  const auto config = pi0_model(*found);
  const Pi0 model(config, {});
  const auto specs = pi0_tensors(config).specs;
  const auto reader = open_pi0_weights(arguments[1], specs);
  if (!reader) return fail(reader.error());
  const auto tensors = named_tensors(specs, model.tensors());
  const auto read = fill(*make_single_communicator(), tensors, *reader, /*readers=*/1);
  if (!read) return fail(read.error());
  auto given = read_tensors(arguments[2]);
  if (!given) return fail(given.error());
  auto answers = pi0_answers(model, std::move(*given));
  std::map<std::string, at::Tensor> gradients;
  for (std::size_t index = 0; index < specs.size(); ++index)
    if (specs[index].kind == TensorKind::trained)
      gradients[specs[index].name] = model.tensors()[index].grad();
  for (const auto& [name, gradient] : gradients) answers.push_back(gradient);
  write_values(arguments[3], answers);
  return 0;
}

int print_samples(const char* const* arguments) {
  const TokenTiles tiles{.token_count = std::atoll(arguments[1]),
                         .sequence_tokens = std::atoll(arguments[2])};
  const SampleOrder order{.seed = std::strtoull(arguments[0], nullptr, 10),
                          .sample_count = tiles.count()};
  const std::int64_t count = std::atoll(arguments[3]);
  for (std::int64_t sample = 0; sample < count; ++sample)
    std::printf("%lld\n", static_cast<long long>(tiles.offset(sample_at(order, sample))));
  return 0;
}

}  // namespace
}  // namespace tj::trainer

int main(int argc, char** argv) {
  const std::string what = argc == 6 ? argv[1] : "";
  if (what == "logits") return tj::trainer::write_logits(argv + 2);
  if (what == "taehv") return tj::trainer::answer_taehv(argv + 2);
  if (what == "adversary") return tj::trainer::answer_adversary(argv + 2);
  if (what == "pi0") return tj::trainer::answer_pi0(argv + 2);
  if (what == "samples") return tj::trainer::print_samples(argv + 2);
  std::fputs("usage: trainer_probe logits|taehv|adversary|pi0|samples, as its head says\n", stderr);
  return 2;
}
