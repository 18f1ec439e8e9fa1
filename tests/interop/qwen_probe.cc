// Answers what tests/interop/run asks of Qwen2.5-VL and VGGT:
//
//   qwen_probe model FOLDER BATCH ANSWER EXPORT   positions, windows, logits, loss, gradients
//   qwen_probe greedy FOLDER BATCH COUNT ANSWER   ids of so many tokens that follow (float32)
//   qwen_probe rules CASES ANSWER                 sizes, tokens, labels, patches; JSON to JSON
//   qwen_probe vggt WEIGHTS BATCH ANSWER          tokens of frames, and what pictures get of them
#include <torch/autograd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tests/interop/probing.h"
#include "trainer/process/durable_file.h"
#include "trainer/workload/read_weights.h"
#include "trainer/workloads/qwen_vggt/geometry.h"
#include "trainer/workloads/qwen_vggt/qwen.h"
#include "trainer/workloads/qwen_vggt/qwen_json.h"
#include "trainer/workloads/qwen_vggt/qwen_weights.h"
#include "trainer/workloads/qwen_vggt/vggt_weights.h"

namespace tj::trainer {
namespace {
using json = nlohmann::json;
using Tensors = std::map<std::string, at::Tensor>;

template <typename Number>
std::vector<Number> numbers(const at::Tensor& values) {
  std::vector<Number> all;
  for (const float value :
       std::span(values.data_ptr<float>(), static_cast<std::size_t>(values.numel())))
    all.push_back(static_cast<Number>(value));
  return all;
}

/// Of sample N: "tokens.N", "labels.N"; where it shows something "grids.N" [pictures, 3],
/// "videos.N", "seconds.N" [pictures] and "patches.N".
std::vector<QwenSample> samples_of(const Tensors& given) {
  std::vector<QwenSample> samples;
  for (int row = 0; given.contains("tokens." + std::to_string(row)); ++row) {
    const auto part = [&](const char* name) {
      return given.at(name + ("." + std::to_string(row)));
    };
    samples.push_back({.tokens = {.ids = numbers<std::int32_t>(part("tokens")),
                                  .labels = numbers<std::int32_t>(part("labels"))}});
    if (!given.contains("grids." + std::to_string(row))) continue;
    const auto grids = numbers<std::int64_t>(part("grids"));
    const auto videos = numbers<int>(part("videos"));
    const auto seconds = numbers<float>(part("seconds"));
    for (std::size_t i = 0; i < videos.size(); ++i)
      samples.back().vision.push_back(
          {.grid = {.frames = grids[3 * i], .rows = grids[3 * i + 1], .columns = grids[3 * i + 2]},
           .is_video = videos[i] != 0,
           .seconds_of_frame = seconds[i]});
    samples.back().patches = numbers<float>(part("patches"));
  }
  return samples;
}

Result<Qwen> open_qwen(const char* folder) {
  const auto config = read_qwen_config(folder);
  if (!config) return config.error();
  const auto specs = qwen_tensors(*config).specs;
  const auto reader = open_qwen_weights(folder, specs);
  if (!reader) return reader.error();
  auto weights = read_weights(*reader, specs, {});
  if (!weights) return weights.error();
  for (auto& weight : *weights) weight.requires_grad_(true);
  return Qwen(std::move(*weights), *config, {});
}

Result<void> export_qwen(const Qwen& model, const std::string& folder) {
  std::vector<TensorBytes> tensors;
  const auto specs = qwen_tensors(model.config()).specs;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto& weight = model.tensors()[i];
    tensors.push_back({.name = specs[i].name,
                       .shape = specs[i].shape,
                       .bytes = {static_cast<const std::byte*>(weight.data_ptr()),
                                 static_cast<std::size_t>(weight.nbytes())}});
  }
  const auto written =
      write_safetensors(folder + "/model.safetensors", tensors, {{"format", "pt"}});
  if (!written) return written.error();
  const auto config = write_durably(folder + "/config.json", qwen_config_json(model.config()));
  return config ? Result<void>() : config.error();
}

at::Tensor floats(const std::vector<std::int64_t>& values) {
  return torch::tensor(values, at::kLong).to(at::kFloat);
}

/// Gradients by name, of what has one.
int answer_model(const char* const* arguments) {
  const auto model = open_qwen(arguments[0]);
  if (!model) return fail(model.error());
  const auto given = read_tensors(arguments[1]);
  if (!given) return fail(given.error());
  const auto batch = qwen_batch(samples_of(*given), model->config().mrope(), at::kCPU);
  if (!batch) return fail(batch.error());
  const auto windows = vision_windows(batch->grids, model->config().vision.windows());
  std::vector<at::Tensor> answers{batch->positions.to(at::kFloat), floats(windows.order),
                                  floats(windows.window_bounds), floats(windows.frame_bounds)};
  const auto loss = model->loss(*batch) / static_cast<double>(batch->target_ids.size(0));
  loss.backward();
  {
    const at::NoGradGuard no_gradients;
    if (const auto pictures = model->pictures(*batch); pictures.defined())
      answers.push_back(pictures);
    answers.push_back(model->logits(*batch));
  }
  answers.push_back(loss.detach());
  const auto specs = qwen_tensors(model->config()).specs;
  Tensors gradients;
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (const auto& gradient = model->tensors()[i].grad(); gradient.defined())
      gradients[specs[i].name] = gradient;
  for (const auto& [name, gradient] : gradients) answers.push_back(gradient);
  write_values(arguments[2], answers);
  const auto exported = export_qwen(*model, arguments[3]);
  return exported ? 0 : fail(exported.error());
}

int answer_greedy(const char* const* arguments) {
  const auto model = open_qwen(arguments[0]);
  if (!model) return fail(model.error());
  const auto given = read_tensors(arguments[1]);
  if (!given) return fail(given.error());
  auto samples = samples_of(*given);
  const at::NoGradGuard no_gradients;
  std::vector<std::int64_t> said;
  for (int token = 0; token < std::atoi(arguments[2]); ++token) {
    const auto batch = qwen_batch({samples.data(), 1}, model->config().mrope(), at::kCPU);
    if (!batch) return fail(batch.error());
    said.push_back(model->logits(*batch)[0][-1].argmax().item<std::int64_t>());
    samples[0].tokens.ids.push_back(static_cast<std::int32_t>(said.back()));
    samples[0].tokens.labels.push_back(kNoLabel);
  }
  write_values(arguments[3], {floats(said)});
  return 0;
}

/// A tokenizer that is easily written twice: a run of letters is one token by a sum of its bytes,
/// any other byte is one.
std::vector<std::int32_t> word_ids(std::string_view text) {
  std::vector<std::int32_t> ids;
  bool is_in_word = false;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_letter = byte < 128 && std::isalpha(byte);
    if (is_letter && is_in_word) {
      ids.back() = (ids.back() * 31 + byte) % 100'000;
    } else {
      ids.push_back(byte);
    }
    is_in_word = is_letter;
  }
  return ids;
}

json sizes_answer(const json& cases) {
  json answer = json::array();
  for (const auto& row : cases) {
    PatchRule rule;
    rule.pixels_min = row.at(2);
    rule.pixels_max = row.at(3);
    const auto found = resized_sides({.height = row.at(0), .width = row.at(1)}, rule);
    if (!found) {
      answer.push_back(nullptr);
      continue;
    }
    answer.push_back({found->height, found->width, token_count(image_grid(*found, rule), rule)});
  }
  return answer;
}

json chats_answer(const json& cases) {
  json answer = json::array();
  for (const auto& row : cases) {
    std::vector<ChatTurn> turns;
    for (const auto& turn : row.at("turns")) {
      const std::string role = turn.at(0);
      turns.push_back({role == "system" ? ChatRole::system
                       : role == "user" ? ChatRole::user
                                        : ChatRole::assistant,
                       turn.at(1)});
    }
    std::vector<ChatVision> vision;
    for (const auto& one : row.at("vision"))
      vision.push_back({.is_video = one.at(0), .tokens = one.at(1)});
    const auto end = row.at("open") ? ChatEnd::open : ChatEnd::complete;
    const auto found = chat_tokens(turns, vision, ChatIds{}, word_ids, end);
    if (!found)
      answer.push_back(describe(found.error()));
    else
      answer.push_back({found->ids, found->labels});
  }
  return answer;
}

/// Bytes of frames [frames, 3, height, width] as patches.
json patches_answer(const json& cases) {
  json answer = json::array();
  for (const auto& row : cases) {
    const PictureSides sides{.height = row.at("height"), .width = row.at("width")};
    const auto pixels = row.at("pixels").get<std::vector<std::uint8_t>>();
    const auto grid = video_grid(sides, row.at("frames"), {});
    std::vector<float> values(
        static_cast<std::size_t>(grid.patches() * PatchRule{}.values_of_patch()));
    write_patches(pixels, sides, {}, {}, values);
    answer.push_back(values);
  }
  return answer;
}

int answer_rules(const char* const* arguments) {
  const auto cases = json::parse(bytes_of(arguments[0]));
  const json answer = {{"sizes", sizes_answer(cases.at("sizes"))},
                       {"chats", chats_answer(cases.at("chats"))},
                       {"patches", patches_answer(cases.at("patches"))}};
  std::ofstream(arguments[1]) << answer.dump();
  return 0;
}

/// Of scenes "frames.0", "frames.1", ... in both sights: all layers' tokens, the newest frame's.
/// Then the tokens for pictures of the first scene, by "merger.*".
int answer_vggt(const char* const* arguments) {
  const auto model = open_vggt(arguments[0], {});
  if (!model) return fail(model.error());
  const auto given = read_tensors(arguments[1]);
  if (!given) return fail(given.error());
  std::vector<at::Tensor> answers;
  const auto layers = (*model)->config().layers;
  for (int scene = 0; given->contains("frames." + std::to_string(scene)); ++scene) {
    const auto& frames = given->at("frames." + std::to_string(scene));
    for (const auto sight : {FrameSight::all, FrameSight::earlier}) {
      answers.push_back((*model)->tokens(frames, sight, layers));
      answers.push_back((*model)->newest(frames, sight));
    }
  }
  const auto& frames = given->at("frames.0");
  const auto side = (*model)->config().patch_side;
  const auto& out = given->at("merger.mlp.2.weight");
  const GeometryConfig config{
      .features = 2 * (*model)->config().width, .hidden = out.size(1), .width = out.size(0)};
  std::vector<at::Tensor> tensors;
  for (const auto& spec : geometry_tensors(config)) tensors.push_back(given->at(spec.name));
  const VisionGrid grid{.rows = frames.size(3) / side, .columns = frames.size(4) / side};
  const auto newest = (*model)->newest(frames, FrameSight::earlier)[0];
  answers.push_back(geometry_tokens(newest, grid, tensors, config));
  write_values(arguments[2], answers);
  return 0;
}

}  // namespace
}  // namespace tj::trainer

int main(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  const auto has = [&](const char* name, int arguments) {
    return what == name && argc == arguments + 2;
  };
  if (has("model", 4)) return tj::trainer::answer_model(argv + 2);
  if (has("greedy", 4)) return tj::trainer::answer_greedy(argv + 2);
  if (has("rules", 2)) return tj::trainer::answer_rules(argv + 2);
  if (has("vggt", 3)) return tj::trainer::answer_vggt(argv + 2);
  std::fputs("usage: qwen_probe model|greedy|rules|vggt, as its head says\n", stderr);
  return 2;
}
