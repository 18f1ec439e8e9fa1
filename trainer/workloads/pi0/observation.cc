#include "trainer/workloads/pi0/observation.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "trainer/data/lerobot/json_place.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::size_t kNumbersMax = 100'000;  // of a state

Error wrong(std::string subject, std::string what) {
  return {.code = Code::invalid, .message = std::move(what), .subject = std::move(subject)};
}

std::vector<float> numbers_of(const JsonPlace& json) {
  std::vector<float> numbers;
  json.each([&](const JsonPlace& value) {
    const auto number = static_cast<float>(value.number());
    if (!std::isfinite(number) || numbers.size() >= kNumbersMax)
      throw value.wrong("must be one of at most " + std::to_string(kNumbersMax) +
                        " numbers that float32 holds");
    numbers.push_back(number);
  });
  return numbers;
}

std::string names_of(const std::vector<CameraSlot>& cameras) {
  std::string text;
  for (const auto& camera : cameras) text += (text.empty() ? "" : ", ") + camera.name;
  return text;
}

}  // namespace

Result<Observation> observation_from(std::string_view text, const fs::path& folder) try {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return wrong("the observation", "is no JSON object");
  for (const auto& [name, value] : json.items())
    if (name != "state" && name != "task" && name != "images")
      return wrong(name, "is no field of an observation; it has state, task and images");
  const JsonPlace whole(json, "");
  Observation made{
      .state = numbers_of(whole.at("state")), .task = whole.at("task").text(), .images = {}};
  if (whole.has("images")) {
    const auto images = whole.at("images");
    if (!images.value().is_object()) throw images.wrong("must be an object, a file of each camera");
    for (const auto& [camera, file] : images.value().items())
      made.images.emplace_back(camera, folder / JsonPlace(file, "images." + camera).text());
  }
  return made;
} catch (const std::runtime_error& failure) {
  return wrong("the observation", failure.what());
}

Result<PolicyView> PolicyView::make(const RobotPolicyShape& shape, std::int64_t actions,
                                    const PolicyFacts& facts, const fs::path& tokenizer) {
  auto model = SentenceModel::open(tokenizer, default_sentencepiece_plugin());
  if (!model) return model.error();
  if (model->vocabulary() > shape.vocabulary)
    return wrong(tokenizer.string(), "has " + std::to_string(model->vocabulary()) +
                                         " pieces, and the policy knows " +
                                         std::to_string(shape.vocabulary));
  const auto& statistics = facts.statistics;
  RobotFramesOptions options{.picture = shape.picture,
                             .horizon = shape.horizon,
                             .state_width = shape.state_width,
                             .action_width = shape.action_width,
                             .normalisation = facts.normalisation,
                             .is_delta = statistics.rule.is_delta,
                             .prompt = {.kind = shape.prompt,
                                        .length = shape.prompt_tokens,
                                        .may_be_cut = facts.may_cut_prompts,
                                        .bos = model->bos()}};
  for (const auto& camera : shape.cameras) options.cameras.push_back({.name = camera});
  PolicyView made(std::move(options), actions, std::move(*model));
  // Of a policy without normalisation nobody knows how many numbers a state has.
  made.state_count_ = statistics.state.mean.size();
  const auto deltas = static_cast<std::int64_t>(statistics.rule.is_delta.size());
  if (deltas > actions || static_cast<std::int64_t>(made.state_count_) > shape.state_width)
    return wrong(kPolicyFile, "is of another policy: it has " + std::to_string(made.state_count_) +
                                  " numbers of a state and " + std::to_string(deltas) +
                                  " of an action, the policy takes " +
                                  std::to_string(shape.state_width) + " and " +
                                  std::to_string(actions));
  auto state =
      Normaliser::make(facts.normalisation, statistics.state,
                       static_cast<std::int64_t>(made.state_count_), statistics.state_name);
  if (!state) return state.error();
  auto action =
      Normaliser::make(facts.normalisation, statistics.action, actions, statistics.action_name);
  if (!action) return action.error();
  made.state_ = std::move(*state);
  made.action_ = std::move(*action);
  return made;
}

Result<std::vector<HostTensor>> PolicyView::see(const Observation& observation) {
  auto tensors = robot_tensors(options_, 1);
  const auto place = place_in(tensors, 0);
  if (auto seen = see_state(observation, place.state); !seen) return seen.error();
  if (auto seen = see_task(observation, place); !seen) return seen.error();
  if (auto seen = see_images(observation, place); !seen) return seen.error();
  return tensors;
}

Result<void> PolicyView::see_state(const Observation& observation, std::span<float> place) const {
  const auto count = observation.state.size();
  const auto wanted = state_count_ > 0 ? state_count_ : place.size();
  if (count > wanted || (state_count_ > 0 && count != wanted))
    return wrong("state", "has " + std::to_string(count) +
                              " numbers; the policy was trained with " + std::to_string(wanted));
  const auto& is_delta = options_.is_delta;
  for (std::size_t i = count; i < is_delta.size(); ++i)
    if (is_delta[i])
      return wrong("state", "has " + std::to_string(count) + " numbers, and the action's number " +
                                std::to_string(i) + " is to be added to the state's");
  std::ranges::copy(observation.state, place.begin());
  if (state_count_ > 0) state_.apply(place.first(count));
  return {};
}

Result<void> PolicyView::see_task(const Observation& observation,
                                  const RobotFramePlace& place) const {
  const EncodeText encode = [this](std::string_view text) { return model_.encode(text); };
  const auto prompt = make_prompt(encode, options_.prompt, observation.task,
                                  place.state.first(observation.state.size()));
  if (!prompt) return wrong("task", prompt.error().message);
  std::ranges::copy(prompt->ids, place.tokens.begin());
  for (std::size_t i = 0; i < place.token_mask.size(); ++i)
    place.token_mask[i] = std::byte{static_cast<std::int64_t>(i) < prompt->count};
  return {};
}

Result<void> PolicyView::see_images(const Observation& observation, const RobotFramePlace& place) {
  const auto bytes = place.images.size() / options_.cameras.size();
  for (const auto& [camera, file] : observation.images) {
    const auto found = std::ranges::find(options_.cameras, camera, &CameraSlot::name);
    if (found == options_.cameras.end())
      return wrong("images." + camera,
                   "is no camera of the policy; it has " + names_of(options_.cameras));
    const auto seen = picture(file);
    if (!seen) return wrong("images." + camera, describe(seen.error()));
    const auto number = static_cast<std::size_t>(found - options_.cameras.begin());
    write_planes(*seen, place.images.subspan(number * bytes, bytes).data());
    place.image_mask[number] = std::byte{1};
  }
  return {};
}

/// As large as the policy takes it.
Result<std::vector<std::byte>> PolicyView::picture(const fs::path& file) {
  const VideoFiles files{.files = {file}};
  if (auto ready = opener_.prepare_for({files}); !ready) return ready.error();
  const auto video = opener_.open(files);
  if (!video) return video.error();
  const auto shape = (*video)->shape();
  std::vector<std::byte> rgb(shape.frame_bytes());
  const std::int64_t first = 0;
  if (auto read = (*video)->read({&first, 1}, rgb); !read) return read.error();
  return resized_with_pad(rgb, {.height = shape.height, .width = shape.width}, options_.picture);
}

std::vector<std::vector<float>> PolicyView::actions(std::span<const float> chunk,
                                                    std::span<const float> state) const {
  const auto width = static_cast<std::size_t>(options_.action_width);
  std::vector<std::vector<float>> rows;
  for (std::size_t at = 0; at + width <= chunk.size(); at += width) {
    const auto row = chunk.subspan(at, action_count_);
    auto& made = rows.emplace_back(row.begin(), row.end());
    action_.undo(made);
    for (std::size_t i = 0; i < options_.is_delta.size(); ++i)
      if (options_.is_delta[i]) made[i] += state[i];
  }
  return rows;
}

}  // namespace tj::trainer
