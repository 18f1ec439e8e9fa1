// Answers what tests/lerobot/run can't ask the trainer itself:
//
//   lerobot_probe frames SET HORIZON OUT  each frame as it is: OUT/{state,action,pad,episode,tasks}
//                                         and a file for each camera
//   lerobot_probe samples SET OUT [--FLAG=VALUE]...   tensors of RobotSamples, by the flags of a
//                                         policy: OUT/0 to OUT/7
//   lerobot_probe speed SET HORIZON COUNT raw|fitted   samples a second of one thread, at random:
//                                         pictures as they are, or resized for a policy
//   lerobot_probe encode MODEL            prompts on standard input, each ended by a zero: a line
//                                         of ids for each
//   lerobot_probe resize H W NEW_H NEW_W  a picture from standard input to standard output
//   lerobot_probe statistics SET          those that the data set has itself
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "trainer/data/parquet/parquet_plugin.h"
#include "trainer/data/prompt/sentence_model.h"
#include "trainer/values/counter_random.h"
#include "trainer/workloads/pi0/robot_data.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

int fail(const Error& error) {
  std::fprintf(stderr, "lerobot_probe: %s\n", describe(error).c_str());
  return 1;
}

template <typename Value>
void append(const fs::path& path, std::span<const Value> values) {
  std::ofstream file(path, std::ios::binary | std::ios::app);
  const auto bytes = std::as_bytes(values);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

Result<LeRobotSet> open_set(const char* folder) {
  return open_lerobot_set(
      {.folder = folder, .parquet_plugin = default_parquet_plugin(), .threads = 2});
}

Result<std::unique_ptr<RobotFrames>> open_frames(const char* folder, std::int64_t horizon,
                                                 bool is_raw = false) {
  auto set = open_set(folder);
  if (!set) return set.error();
  RobotFramesOptions options{.horizon = horizon, .normalisation = Normalisation::none};
  for (const auto& camera : set->meta.cameras)
    options.cameras.push_back({.name = camera, .feature = camera});
  if (is_raw) {  // all cameras are as large as the first: nothing is resized
    const auto& shape = set->info.features.at(set->meta.cameras.front()).shape;
    options.picture = {.height = shape[0], .width = shape[1]};
  }
  VideoOpener opener(VideoOpener::default_plugin());
  return RobotFrames::make(
      std::move(*set), {},
      [](std::string_view) -> Result<std::vector<std::int32_t>> {
        return std::vector<std::int32_t>();
      },
      opener, options);
}

/// Room for one sample.
struct Room {
  explicit Room(const RobotFramesOptions& options)
      : images(options.cameras.size() *
               static_cast<std::size_t>(3 * options.picture.height * options.picture.width)),
        image_mask(options.cameras.size()),
        tokens(static_cast<std::size_t>(options.prompt.length)),
        token_mask(tokens.size()),
        state(static_cast<std::size_t>(options.state_width)),
        actions(static_cast<std::size_t>(options.horizon * options.action_width)),
        pad(static_cast<std::size_t>(options.horizon)) {}
  RobotFramePlace place() { return {images, image_mask, tokens, token_mask, state, actions, pad}; }
  std::vector<std::byte> images, image_mask;
  std::vector<std::int32_t> tokens;
  std::vector<std::byte> token_mask;
  std::vector<float> state, actions;
  std::vector<std::byte> pad;
};

int write_frames(const char* folder, std::int64_t horizon, const fs::path& out) {
  const auto frames = open_frames(folder, horizon);
  if (!frames) return fail(frames.error());
  const auto& set = (*frames)->set();
  std::ofstream tasks(out / "tasks");
  Room room((*frames)->options());
  for (std::int64_t index = 0; index < (*frames)->count(); ++index) {
    if (const auto read = (*frames)->read(index, 0, room.place()); !read) return fail(read.error());
    append<float>(out / "state", room.state);
    append<float>(out / "action", room.actions);
    append<std::byte>(out / "pad", room.pad);
    const auto frame = (*frames)->frame(index);
    const auto episode = static_cast<std::int32_t>(frame.episode);
    append<std::int32_t>(out / "episode", {&episode, 1});
    tasks << set.meta
                 .tasks[static_cast<std::size_t>(set.tasks[static_cast<std::size_t>(frame.number)])]
          << "\n";
    for (const auto& camera : set.meta.cameras) {
      PictureSize size;
      const auto rgb = (*frames)->picture(frame, camera, size);
      if (!rgb) return fail(rgb.error());
      append<std::byte>(out / camera, *rgb);
    }
  }
  return 0;
}

int measure(const char* folder, std::int64_t horizon, std::int64_t count, bool is_raw) {
  const auto frames = open_frames(folder, horizon, is_raw);
  if (!frames) return fail(frames.error());
  Room room((*frames)->options());
  const auto begun = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(i)) %
                                                 static_cast<std::uint64_t>((*frames)->count()));
    if (const auto read = (*frames)->read(index, 0, room.place()); !read) return fail(read.error());
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begun;
  std::printf("%.1f\n", static_cast<double>(count) / taken.count());
  return 0;
}

Flags flags_of(int count, char** words) {
  Flags flags;
  for (int i = 0; i < count; ++i) {
    const std::string word = words[i];
    const auto equals = word.find('=');
    flags[word.substr(0, equals)] = equals == std::string::npos ? "true" : word.substr(equals + 1);
  }
  return flags;
}

/// Of a small policy with three cameras.
int write_samples(const char* folder, const fs::path& out, const Flags& flags) {
  FlagReader reader(flags);
  RobotPolicyShape shape{.cameras = {"top", "wrist", "other"},
                         .picture = {.height = 56, .width = 56},
                         .horizon = 6,
                         .state_width = 8,
                         .action_width = 8};
  const bool is_pi05 = flags.contains("--pi05");
  if (is_pi05) shape.prompt = PromptKind::pi05, shape.prompt_tokens = 200;
  const bool is_eval = flags.contains("--eval");
  if (flags.contains("--prompt-tokens"))
    shape.prompt_tokens = std::atoll(flags.at("--prompt-tokens").c_str());
  const auto options =
      read_robot_data_flags(reader, is_pi05 ? Normalisation::quantiles : Normalisation::mean_std);
  if (reader.error()) return fail(*reader.error());
  const DataPaths data{.flag = "--data", .paths = {folder}, .is_eval = is_eval};
  const auto opened = open_robot_data(data, {folder}, shape, options);
  if (opened.failure) return fail({.message = opened.failure->message, .subject = ""});
  std::vector<Sample> samples;
  for (std::int64_t index = 0; index < opened.source->sample_count(); ++index)
    samples.push_back({.index = index, .epoch_key = 7});
  const auto batch = opened.source->read(samples);
  if (!batch) return fail(batch.error());
  for (std::size_t i = 0; i < batch->tensors.size(); ++i)
    append<std::byte>(out / std::to_string(i), batch->tensors[i].bytes);
  std::printf("%s\n%s\n%lld\n", opened.source->description().c_str(),
              opened.source->mark().digest.c_str(), static_cast<long long>(batch->weight));
  return 0;
}

int encode(const char* file) {
  const auto model = SentenceModel::open(file, default_sentencepiece_plugin());
  if (!model) return fail(model.error());
  const EncodeText encode_text = [&](std::string_view text) { return model->encode(text); };
  std::string task;
  while (std::getline(std::cin, task, '\0')) {
    const auto prompt =
        make_prompt(encode_text, {.length = 64, .may_be_cut = true, .bos = model->bos()}, task, {});
    if (!prompt) return fail(prompt.error());
    std::string line = std::to_string(prompt->count);
    for (const auto id : prompt->ids) line += " " + std::to_string(id);
    std::puts(line.c_str());
  }
  return 0;
}

int resize(PictureSize from, PictureSize to) {
  std::vector<char> bytes{std::istreambuf_iterator<char>(std::cin), {}};
  const auto made = resized_with_pad(std::as_bytes(std::span<const char>(bytes)), from, to);
  std::fwrite(made.data(), 1, made.size(), stdout);
  return 0;
}

int print_statistics(const char* folder) {
  const auto set = open_set(folder);
  if (!set) return fail(set.error());
  const auto statistics =
      statistics_for(*set, "", {.state_name = "observation.state", .action_name = "action"});
  if (!statistics) return fail(statistics.error());
  std::fputs(statistics_json(*statistics).c_str(), stdout);
  return 0;
}

int run(int count, char** words) {
  const std::string command = count > 1 ? words[1] : "";
  if (command == "frames" && count == 5)
    return write_frames(words[2], std::atoll(words[3]), words[4]);
  if (command == "samples" && count >= 4)
    return write_samples(words[2], words[3], flags_of(count - 4, words + 4));
  if (command == "speed" && count == 6)
    return measure(words[2], std::atoll(words[3]), std::atoll(words[4]),
                   words[5] == std::string("raw"));
  if (command == "encode" && count == 3) return encode(words[2]);
  if (command == "resize" && count == 6)
    return resize({.height = std::atoll(words[2]), .width = std::atoll(words[3])},
                  {.height = std::atoll(words[4]), .width = std::atoll(words[5])});
  if (command == "statistics" && count == 3) return print_statistics(words[2]);
  std::fputs("usage: see the head of lerobot_probe.cc\n", stderr);
  return 2;
}

}  // namespace
}  // namespace tj::trainer

int main(int count, char** words) { return tj::trainer::run(count, words); }
