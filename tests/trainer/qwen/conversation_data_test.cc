#include "trainer/workloads/qwen_vggt/conversation_data.h"
#include "tests/places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/temporary_folder.h"
#include "trainer/data/spelled_bpe.h"
#include "trainer/data/tokenizer_json.h"
#include "trainer/data/video/video_writer.h"
#include "trainer/workloads/qwen_vggt/conversation_encoder.h"

namespace tj::trainer {
namespace {

const auto kPictures = std::filesystem::path(source_dir()) / "tests/trainer/data/pictures";

constexpr ChatIds kIds{.turn_begin = 257,
                       .turn_end = 258,
                       .vision = {.begin = 259, .end = 260, .image = 261, .video = 262}};

/// Bytes are tokens, and what Qwen's chats are made of.
std::string tokenizer_text() {
  SpelledBpe spelled{.ids = {}, .merges = {}, .document_end = kEndOfText};
  const auto bytes = byte_spellings();
  for (std::size_t byte = 0; byte < bytes.size(); ++byte)
    spelled.ids[bytes[byte]] = static_cast<std::int64_t>(byte);
  std::int64_t next = 256;
  for (const char* const special : {kEndOfText, "<|im_start|>", "<|im_end|>", "<|vision_start|>",
                                    "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"}) {
    spelled.ids[special] = next++;
    spelled.specials.insert(special);
  }
  spelled.words = WordRule::qwen2;
  spelled.is_composed = true;
  return tokenizer_json_text(spelled);
}

std::string asked_of_video(const std::string& videos, const std::string& question) {
  return R"({"videos": [)" + videos + R"(], "conversations": [{"from": "human", "value": ")" +
         question + "\"}, {\"from\": \"gpt\", \"value\": \"yes\"}]}\n";
}

std::string asked(const std::string& pictures, const std::string& question,
                  const std::string& answer = "yes") {
  return R"({"images": [)" + pictures + R"(], "conversations": [{"from": "human", "value": ")" +
         question + R"("}, {"from": "gpt", "value": ")" + answer + "\"}]}\n";
}

class ConversationData : public testing::Test {
 protected:
  void SetUp() override {
    shape.ids = kIds;
    shape.mrope.ids = kIds.vision;
    shape.vocabulary = 300;
    shape.has_geometry = true;
    options.tokenizer = folder.write("model/tokenizer.json", tokenizer_text()).string();
    options.data_root = kPictures.string();
    options.picture_plugin = TJ_PICTURE_PLUGIN;
    options.video_plugin = TJ_VIDEO_PLUGIN;
  }
  /// Of so many frames of 64 x 48 pixels, 24 in a second, each of a grey of its own.
  void write_clip(const std::string& name, std::int64_t frames) const {
    const VideoShape clip{.frames = frames, .height = 48, .width = 64, .rate = {.numerator = 24}};
    auto writer =
        create_video({.out = folder.path() / name, .shape = clip, .plugin = options.video_plugin});
    ASSERT_TRUE(writer) << describe(writer.error());
    for (std::int64_t i = 0; i < frames; ++i) {
      const std::vector<std::byte> grey(clip.frame_bytes(), std::byte(4 * i));
      ASSERT_TRUE((*writer)->write(grey));
    }
    ASSERT_TRUE((*writer)->finish());
  }

  OpenedConversations open(const std::string& lines, bool is_eval = false) const {
    const auto file = folder.write("data.jsonl", lines).string();
    return open_conversations(
        {.flag = is_eval ? "--eval-data" : "--data", .paths = {file}, .is_eval = is_eval}, {file},
        shape, options);
  }
  std::string flaw_of(const std::string& lines) const {
    const auto opened = open(lines);
    if (opened.failure) return opened.failure->message;
    const Sample first{.index = 0};
    const auto read = opened.source->read({&first, 1});
    return read ? "none" : describe(read.error());
  }

  TemporaryFolder folder;
  ConversationShape shape;
  ConversationOptions options;
};

template <typename Value>
std::vector<Value> values(const HostTensor& tensor) {
  std::vector<Value> all(tensor.bytes.size() / sizeof(Value));
  if (!all.empty()) std::memcpy(all.data(), tensor.bytes.data(), tensor.bytes.size());
  return all;
}
using Shape = std::vector<std::int64_t>;

TEST_F(ConversationData, samples_are_as_long_as_the_longest_of_their_batch) {
  const auto opened =
      open(asked("", "go?") + asked(R"("photo.jpg", "rgba.png")", "<image><image>"));
  ASSERT_FALSE(opened.failure) << opened.failure->message;
  const std::vector<Sample> both{{.index = 1}, {.index = 0}};
  const auto batch = opened.source->read(both);
  ASSERT_TRUE(batch) << describe(batch.error());
  const auto& tensors = batch->tensors;
  ASSERT_EQ(tensors.size(), kConversationTensors);
  const auto length = tensors[kConversationTokens].shape[1];
  EXPECT_EQ(tensors[kConversationPositions].shape, (Shape{2, 3, length}));
  // 16 x 24 pixels become 2 x 3 tokens, 2 x 2 the least: 56 x 84 and 56 x 56.
  EXPECT_EQ(tensors[kConversationGrids].shape, (Shape{2, 2, 4}));
  EXPECT_EQ(values<std::int32_t>(tensors[kConversationGrids]),
            (std::vector<std::int32_t>{1, 4, 6, 0, 1, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(tensors[kConversationPatches].shape, (Shape{2, 24 + 16, 1176}));
  EXPECT_EQ(tensors[kConversationFrames].shape, (Shape{2, 2, 3, 56, 56})) << "as the newest";
  const auto hashes = values<std::int32_t>(tensors[kConversationFrameHashes]);
  EXPECT_NE(hashes[0] | hashes[1], 0);
  EXPECT_EQ(hashes[4] | hashes[5] | hashes[6] | hashes[7], 0);
  EXPECT_EQ(values<std::int32_t>(tensors[kConversationNumbers]), (std::vector<std::int32_t>{1, 0}));
  // "yes", <|im_end|> and the end of the line; the assistant's header is nine bytes and more here.
  const auto labels = values<std::int32_t>(tensors[kConversationLabels]);
  EXPECT_EQ(batch->weight, std::ranges::count_if(labels, [](int label) { return label >= 0; }));
  EXPECT_EQ(labels.back(), kNoLabel);
}

TEST_F(ConversationData, equal_pictures_have_equal_hashes_and_old_ones_are_left_out) {
  options.history_pictures_max = 1;
  const auto opened =
      open(asked(R"("rgba.png", "photo.jpg", "photo.jpg")", "<image>\\n<image>\\n<image>\\n?"));
  ASSERT_FALSE(opened.failure) << opened.failure->message;
  const Sample first{.index = 0};
  const auto batch = opened.source->read({&first, 1});
  ASSERT_TRUE(batch) << describe(batch.error());
  EXPECT_EQ(batch->tensors[kConversationGrids].shape, (Shape{1, 2, 4}));
  const auto hashes = values<std::int32_t>(batch->tensors[kConversationFrameHashes]);
  EXPECT_EQ(hashes[0], hashes[2]);
  EXPECT_EQ(hashes[1], hashes[3]);
}

TEST_F(ConversationData, what_can_not_be_used_is_named) {
  options.bad_share_max = 0;
  const auto file = (folder.path() / "data.jsonl").string() + ": conversation 1, at byte 0: ";
  const auto allowed =
      "; 1 of 1 conversations can't be used, --bad-data-max allows 0% (mend or "
      "remove them, or allow more)";
  EXPECT_EQ(flaw_of(asked(R"("photo.jpg")", "<image><image>")),
            file + "has 2 marks <image> and 1 pictures: each needs the other" + allowed);
  EXPECT_EQ(flaw_of(asked(R"("none.jpg")", "<image>")),
            file + (kPictures / "none.jpg").string() + " is not there" + allowed);
  EXPECT_EQ(flaw_of(asked(R"("wide.png")", "<image>")),
            file + (kPictures / "wide.png").string() +
                ": 20000 x 3 pixels: one side is more than 200 times the other: Qwen2.5-VL sees no "
                "such picture" +
                allowed);
  options.tokens_max = 20;
  EXPECT_NE(flaw_of(asked("", "?")).find("tokens up to its first answer, and --seq-len allows 20"),
            std::string::npos);
}

TEST_F(ConversationData, a_video_is_seen_by_pairs_of_its_frames) {
  write_clip("clip.mp4", 48);
  options.data_root = folder.path().string();
  const auto opened = open(asked_of_video(R"("clip.mp4")", "<video>?"));
  ASSERT_FALSE(opened.failure) << opened.failure->message;
  const Sample first{.index = 0};
  const auto batch = opened.source->read({&first, 1});
  ASSERT_TRUE(batch) << describe(batch.error());
  const auto& tensors = batch->tensors;
  // 128 tokens at least of each pair: 64 x 48 pixels become 392 x 280, 14 x 10 of them.
  EXPECT_EQ(values<std::int32_t>(tensors[kConversationGrids]),
            (std::vector<std::int32_t>{2, 20, 28, 1}));
  const auto ids = values<std::int32_t>(tensors[kConversationTokens]);
  EXPECT_EQ(std::ranges::count(ids, kIds.vision.video), 280);
  EXPECT_EQ(std::ranges::count(ids, kIds.vision.image), 0);
  EXPECT_EQ(tensors[kConversationFrames].shape[1], 0) << "VGGT sees still pictures alone";
  // Frames 0, 16, 31 and 47: the patches of the first pair begin with 0 and 64, red by red.
  constexpr std::size_t kHalf = 14 * 14, kValues = 1176;
  const auto patches = values<std::uint8_t>(tensors[kConversationPatches]);
  const auto second = patches.size() / 2;
  EXPECT_EQ(patches.size(), 2 * 560 * kValues);
  EXPECT_NEAR(patches[0], 0, 6);
  EXPECT_NEAR(patches[kHalf], 64, 6);
  EXPECT_NEAR(patches[second], 124, 6);
  EXPECT_NEAR(patches[second + kHalf], 188, 6);
  // A second for each pair, two positions a second.
  const auto positions = values<std::int32_t>(tensors[kConversationPositions]);
  const auto begin = std::ranges::find(ids, kIds.vision.video) - ids.begin();
  EXPECT_EQ(
      positions[static_cast<std::size_t>(begin + 140)] - positions[static_cast<std::size_t>(begin)],
      2);
}

TEST_F(ConversationData, a_video_that_can_not_be_used_is_named) {
  options.bad_share_max = 0;
  options.data_root = folder.path().string();
  folder.write("none.mp4", std::string(500, 'x'));
  folder.write("wide.ppm", "P6 500 2 255\n" + std::string(3000, 'x'));
  write_clip("clip.mp4", 48);
  const auto at = (folder.path() / "data.jsonl").string() + ": conversation 1, at byte 0: ";
  const auto flaw = [&](const std::string& videos, const std::string& question = "<video>") {
    const auto text = flaw_of(asked_of_video(videos, question));
    EXPECT_TRUE(text.starts_with(at)) << text;
    return text.substr(std::min(at.size(), text.size()));
  };
  EXPECT_TRUE(
      flaw(R"("none.mp4")")
          .starts_with((folder.path() / "none.mp4").string() + ": is no video, or ends early: "));
  EXPECT_TRUE(
      flaw(R"("gone.mp4")").starts_with((folder.path() / "gone.mp4").string() + " is not there"));
  EXPECT_TRUE(flaw(R"("model")")
                  .starts_with((folder.path() / "model").string() +
                               " is a folder; a picture or a video is one file"));
  EXPECT_TRUE(flaw(R"("/dev/null")")
                  .starts_with("/dev/null is no regular file; a picture or a video is one file"));
  EXPECT_TRUE(flaw(R"("wide.ppm")")
                  .starts_with((folder.path() / "wide.ppm").string() +
                               ": 500 x 2 pixels: one side is more than 200 times the other"));
  EXPECT_TRUE(flaw(R"("clip.mp4")", "<video><video>")
                  .starts_with("has 2 marks <video> and 1 videos: each needs the other"));
  EXPECT_TRUE(flaw(R"("clip.mp4")", "<image>")
                  .starts_with("has 1 marks <image> and 0 pictures: each needs the other"));
  options.tokens_max = 200;
  EXPECT_NE(flaw(R"("clip.mp4")")
                .find("tokens up to its first answer, and --seq-len allows 200; 280 of them are 4 "
                      "frames of videos: --video-frames-max, --video-fps and --video-pixels-max "
                      "lower that"),
            std::string::npos);
}

TEST_F(ConversationData, a_missing_reader_of_videos_ends_the_training_and_blames_no_conversation) {
  options.bad_share_max = 0.9;
  options.data_root = folder.path().string();
  options.video_plugin = "/nowhere/libtrainer_video.so";
  folder.write("clip.mp4", "a video");
  const auto flaw = flaw_of(asked_of_video(R"("clip.mp4")", "<video>") + asked("", "?", "good"));
  EXPECT_NE(
      flaw.find("/nowhere/libtrainer_video.so: is missing; it must lie beside trainer-engine"),
      std::string::npos)
      << flaw;
}

TEST_F(ConversationData, another_one_takes_the_place_of_one_that_can_not_be_used) {
  options.bad_share_max = 0.5;
  const auto opened = open(asked(R"("none.jpg")", "<image>") + asked("", "?", "good"));
  ASSERT_FALSE(opened.failure) << opened.failure->message;
  for (std::uint64_t key = 0; key < 8; ++key) {
    const Sample first{.index = 0, .epoch_key = key};
    const auto batch = opened.source->read({&first, 1});
    ASSERT_TRUE(batch) << describe(batch.error());
    EXPECT_EQ(batch->tensors[kConversationGrids].shape, (Shape{1, 0, 4}));
  }
}

TEST_F(ConversationData, turns_that_do_not_fit_are_left_out_from_the_end) {
  const std::string two =
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
          {"role": "user", "content": "c"}, {"role": "assistant", "content": "dddddddddd"}]})";
  std::string one_line = two;
  std::erase(one_line, '\n');
  const Sample first{.index = 0};
  const auto length = [&] {
    const auto opened = open(one_line);
    const auto batch = opened.source->read({&first, 1});
    return batch ? batch->tensors[kConversationTokens].shape[1] : -1;
  };
  const auto whole = length();
  options.tokens_max = whole - 1;
  const auto cut = length();
  EXPECT_GT(cut, 0);
  EXPECT_LT(cut, whole - 10);
}

TEST_F(ConversationData, a_share_is_held_out) {
  options.held_out_share = 0.25;
  std::string lines;
  for (int i = 0; i < 8; ++i) lines += asked("", std::to_string(i));
  const auto train = open(lines), eval = open(lines, true);
  ASSERT_FALSE(train.failure || eval.failure);
  EXPECT_EQ(train.source->sample_count(), 6);
  EXPECT_EQ(eval.source->sample_count(), 2);
  EXPECT_NE(train.source->mark().digest, eval.source->mark().digest);
}

TEST_F(ConversationData, a_tokenizer_of_another_model_is_refused) {
  shape.ids.turn_end = 7;
  EXPECT_EQ(flaw_of(asked("", "?")),
            "--tokenizer " + options.tokenizer +
                ": gives <|im_end|> the id 258, and the model knows it as 7");
  options.tokenizer.clear();
  const auto opened = open(asked("", "?"));
  ASSERT_TRUE(opened.failure);
  EXPECT_EQ(opened.failure->reason, "BadConfig");
}

TEST_F(ConversationData, made_up_ones_are_as_large_as_they_get) {
  options.pixels_max = 100 * 784;
  options.history_pictures_max = 2;
  options.tokens_max = 400;
  const auto size = largest_conversation(shape, options);
  EXPECT_EQ(size.pictures, 3);
  EXPECT_EQ(size.sides, (PictureSides{.height = 280, .width = 280}));
  const auto source = make_up_conversations(shape, options);
  const Sample first{.index = 0};
  const auto batch = source->read({&first, 1});
  ASSERT_TRUE(batch) << describe(batch.error());
  EXPECT_EQ(batch->tensors[kConversationTokens].shape, (Shape{1, 400}));
  EXPECT_EQ(batch->tensors[kConversationPatches].shape, (Shape{1, size.patches, 1176}));
}

TEST_F(ConversationData, a_prompt_is_an_open_conversation) {
  const auto prompts = ConversationPrompts::open(shape, options);
  ASSERT_TRUE(prompts) << describe(prompts.error());
  const Conversation question{.turns = {{.speaker = Speaker::user, .text = "<image>?"}},
                              .shown = {{.path = "photo.jpg"}}};
  const auto batch = prompts->batch(question, kPictures);
  ASSERT_TRUE(batch) << describe(batch.error());
  EXPECT_EQ(batch->weight, 0);
  const auto ids = values<std::int32_t>(batch->tensors[kConversationTokens]);
  EXPECT_EQ(ids.back(), '\n');
  EXPECT_EQ(prompts->text(std::vector<std::int32_t>{'g', 'o', kIds.turn_end, 7}), "go\a");
}

}  // namespace
}  // namespace tj::trainer
