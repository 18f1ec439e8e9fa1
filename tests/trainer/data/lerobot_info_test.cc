#include "trainer/data/lerobot/lerobot_info.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {

constexpr const char* kInfo = R"({
  "codebase_version": "v2.1", "fps": 30, "total_episodes": 2, "total_frames": 9, "total_tasks": 1,
  "chunks_size": 1000, "data_path": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
  "video_path": null, "robot_type": null,
  "features": {
    "action": {"dtype": "float32", "shape": [7], "names": null},
    "observation.images.top": {"dtype": "video", "shape": [480, 640, 3], "names": null},
    "observation.image": {"dtype": "image", "shape": [8, 8, 3], "names": null}}})";

nlohmann::json info() { return nlohmann::json::parse(kInfo); }
std::string error_of(const nlohmann::json& json) {
  const auto read = lerobot_info_from(json.dump());
  return read ? "" : describe(read.error());
}

TEST(LeRobotInfo, says_what_the_files_hold) {
  const auto read = lerobot_info_from(kInfo);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->layout, LeRobotLayout::file_per_episode);
  EXPECT_EQ(read->fps, 30);
  EXPECT_EQ(read->features.at("action").width(), 7);
  EXPECT_EQ(read->video_path, "");
  EXPECT_EQ(read->cameras(),
            (std::vector<std::string>{"observation.image", "observation.images.top"}));
  EXPECT_EQ(read->vectors_text(), "action (7)");
}

TEST(LeRobotInfo, what_is_wrong_is_named_with_its_place_and_value) {
  auto json = info();
  json["codebase_version"] = "v1.6";
  EXPECT_EQ(error_of(json),
            "codebase_version must be v2.0, v2.1 or v3.x (LeRobot's lerobot/datasets/v21 and v30 "
            "convert older ones), and is \"v1.6\"");
  json = info();
  json.erase("fps");
  EXPECT_EQ(error_of(json), "fps is missing");
  json = info();
  json["features"]["action"]["shape"][0] = -1;
  EXPECT_EQ(error_of(json),
            "features.action.shape[0] must be a whole number from 1 to 1000000000, and is -1");
  json = info();
  json["total_frames"] = 1e300;
  EXPECT_EQ(error_of(json),
            "total_frames must be a whole number from 1 to 1099511627776, and is 1e+300");
  json["features"] = {1, 2};
  json["total_frames"] = 9;
  EXPECT_EQ(error_of(json), "features must be an object, and is array");
  EXPECT_EQ(describe(lerobot_info_from("{").error()), "is no JSON");
}

TEST(LeRobotInfo, a_document_that_nests_without_end_is_refused) {
  const std::string deep(200'000, '[');
  EXPECT_FALSE(lerobot_info_from(deep));
  EXPECT_EQ(describe(lerobot_info_from("{\"codebase_version\":" + deep.substr(0, 100'000) +
                                       std::string(100'000, ']') + "}")
                         .error()),
            "codebase_version must be text, and is array");
}

TEST(LeRobotInfo, paths_are_filled_in_as_python_does) {
  const std::map<std::string, PathValue> values{{"episode_chunk", std::int64_t{2}},
                                                {"episode_index", std::int64_t{2013}},
                                                {"video_key", std::string("observation.top")}};
  const auto path = filled_path(
      "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4", values);
  ASSERT_TRUE(path);
  EXPECT_EQ(*path, "videos/chunk-002/observation.top/episode_002013.mp4");
  EXPECT_EQ(*filled_path("{episode_index}", values), "2013");
  const auto error_of_path = [&](const char* pattern) {
    const auto filled = filled_path(pattern, values);
    return filled ? "" : describe(filled.error());
  };
  EXPECT_EQ(error_of_path("a/{b}"), "the path \"a/{b}\" has a field {b} of no meaning");
  EXPECT_EQ(error_of_path("a/{"), "the path \"a/{\" has a { without a }");
  EXPECT_EQ(error_of_path("../{episode_index}"),
            "the path \"../{episode_index}\" leads out of the data set");
  EXPECT_EQ(error_of_path("/etc/passwd"), "the path \"/etc/passwd\" leads out of the data set");
  EXPECT_EQ(
      error_of_path("{episode_index:999d}"),
      "the path \"{episode_index:999d}\" has {episode_index:999d}; the form must be like 03d");
  EXPECT_EQ(error_of_path("{video_key:03d}"),
            "the path \"{video_key:03d}\" has {video_key:03d}, and the field is text");
}

TEST(LeRobotInfo, a_folder_of_another_kind_is_told_what_becomes_of_it) {
  const TemporaryFolder folder;
  const auto error = [&] { return describe(read_lerobot_info(folder.path(), "--data").error()); };
  EXPECT_NE(error().find("is no LeRobot data set: it has no meta/info.json"), std::string::npos);
  std::filesystem::create_directories(folder.path() / "1.0.0");
  std::ofstream(folder.path() / "1.0.0" / "libero-train.tfrecord-00000-of-00001") << "x";
  EXPECT_NE(error().find("holds RLDS or TFDS records; LeRobot's Python makes a data set of it"),
            std::string::npos);
  const TemporaryFolder archives;
  std::ofstream(archives.path() / "shard-000.tar") << "x";
  EXPECT_NE(describe(read_lerobot_info(archives.path(), "--data").error())
                .find("holds archives, as of WebDataset"),
            std::string::npos);
}

}  // namespace
}  // namespace tj::trainer
