#include "trainer/workloads/taehv/latents_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "tests/temporary_folder.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

LatentsHead some_head() {
  return {.tensor = {.name = kLatentsTensor, .shape = {3, 2, 1, 2}, .dtype = kFloat32},
          .model = "taehv-nano",
          .video = VideoShape{.frames = 9,
                              .height = 8,
                              .width = 15,
                              .rate = {.numerator = 24000, .denominator = 1001}}};
}

/// Whatever the file says it has.
fs::path write(const TemporaryFolder& folder, const std::string& header, std::size_t bytes) {
  const std::uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), sizeof length);
  return folder.write("made.safetensors", text + header + std::string(bytes, '\0'));
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(LatentsFile, gives_back_what_was_written_latent_by_latent) {
  const TemporaryFolder folder;
  const auto out = folder.path() / "a.safetensors";
  auto writer = LatentsWriter::create(out, some_head(), {{"patch", "1"}});
  ASSERT_TRUE(writer) << describe(writer.error());
  EXPECT_FALSE(fs::exists(out));
  for (float i = 0; i < 3; ++i) {
    const float latent[] = {i, i + 0.25F, -i, 7};
    ASSERT_TRUE(writer->write(std::as_bytes(std::span(latent))));
  }
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(files_in(folder.path()), 1U);
  auto reader = LatentsReader::open(out);
  ASSERT_TRUE(reader) << describe(reader.error());
  EXPECT_EQ(reader->head().tensor, some_head().tensor);
  EXPECT_EQ(reader->head().model, "taehv-nano");
  ASSERT_TRUE(reader->head().video);
  EXPECT_EQ(reader->head().video->frames, 9);
  EXPECT_EQ(reader->head().video->width, 15);
  EXPECT_EQ(to_string(reader->head().video->rate), "24000/1001");
  for (float i = 0; i < 3; ++i) {
    float latent[4] = {};
    ASSERT_TRUE(reader->read(std::as_writable_bytes(std::span(latent))));
    EXPECT_EQ(latent[1], i + 0.25F);
    EXPECT_EQ(latent[3], 7);
  }
  // Any reader of the format takes it.
  const auto file = SafetensorsFile::open(out);
  ASSERT_TRUE(file) << describe(file.error());
  EXPECT_EQ(file->metadata().at("patch"), "1");
}

TEST(LatentsFile, one_that_is_not_finished_leaves_nothing) {
  const TemporaryFolder folder;
  {
    const auto writer = LatentsWriter::create(folder.path() / "a.safetensors", some_head(), {});
    ASSERT_TRUE(writer);
    EXPECT_EQ(files_in(folder.path()), 1U);
  }
  EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(LatentsFile, is_never_written_over_another_one) {
  const TemporaryFolder folder;
  const auto out = folder.write("a.safetensors", "mine");
  const auto refused = LatentsWriter::create(out, some_head(), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::conflict);
  const auto late = folder.path() / "b.safetensors";
  auto head = some_head();
  head.tensor.shape = {1, 1, 1, 1};
  auto writer = LatentsWriter::create(late, head, {});
  ASSERT_TRUE(writer);
  folder.write("b.safetensors", "somebody else's");
  const float latent[] = {1};
  ASSERT_TRUE(writer->write(std::as_bytes(std::span(latent))));
  const auto finished = writer->finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, Code::conflict);
  EXPECT_EQ(fs::file_size(late), 15U);
}

TEST(LatentsFile, what_does_not_fit_on_the_disk_is_not_begun) {
  const TemporaryFolder folder;
  auto head = some_head();
  head.tensor.shape = {std::int64_t{1} << 40, 1024, 1024, 1};
  const auto refused = LatentsWriter::create(folder.path() / "a.safetensors", head, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unavailable);
  EXPECT_TRUE(refused.error().message.starts_with("needs 4,611,686,018,427,38"));
  EXPECT_EQ(files_in(folder.path()), 0U);
}

std::string entry(const std::string& shape, std::size_t bytes, const std::string& dtype = "F32") {
  return R"("latents":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[0,)" +
         std::to_string(bytes) + "]}";
}

TEST(LatentsFile, a_file_that_lies_is_refused_by_name) {
  const TemporaryFolder folder;
  const auto why = [&](const std::string& header, std::size_t bytes) {
    const auto reader = LatentsReader::open(write(folder, header, bytes));
    EXPECT_FALSE(reader) << header;
    if (reader) return std::string();
    EXPECT_EQ(reader.error().code, Code::invalid);
    EXPECT_TRUE(reader.error().subject.ends_with("made.safetensors"));
    return reader.error().message;
  };
  const auto says = [&](const std::string& metadata) {
    return R"({"__metadata__":{)" + metadata + "}," + entry("[1,1,1,2]", 8) + "}";
  };
  EXPECT_EQ(why("{}", 0), "has no tensor \"latents\"");
  EXPECT_TRUE(why("{" + entry("[1000000000,16,64,64]", 8) + "}", 8).ends_with("of its shape"));
  EXPECT_TRUE(why("{" + entry("[1,1,1,4]", 8) + "}", 8).ends_with("of its shape"));
  EXPECT_TRUE(
      why("{" + entry("[1,1,1,4]", 16) + "}", 8)
          .ends_with("tensor latents ends 8 bytes behind the end of the file (cut short?)"));
  EXPECT_EQ(why("{" + entry("[2,1]", 8) + "}", 8),
            "has latents of the shape [2, 1]; it must be [number, channels, height, width]");
  EXPECT_TRUE(why("{" + entry("[0,1,1,2]", 0) + "}", 0).starts_with("has latents of the shape"));
  EXPECT_EQ(why("{" + entry("[1,1,1,1]", 8, "I64") + "}", 8),
            "has latents of type I64; F32, F16 and BF16 can be read");
  EXPECT_EQ(why(says(R"("frames":"many","height":"8","width":"16")"), 8),
            "says frames \"many\" in its metadata; it must be a whole number from 1");
  EXPECT_EQ(why(says(R"("frames":"1","height":"-8","width":"16")"), 8),
            "says height \"-8\" in its metadata; it must be a whole number from 1");
  EXPECT_EQ(why(says(R"("frames":"1","height":"8")"), 8),
            "says width \"\" in its metadata; it must be a whole number from 1");
  EXPECT_EQ(why(says(R"("frames":"1","height":"8","width":"16","frame_rate":"24/0")"), 8),
            "says frame_rate \"24/0\" in its metadata; it must be a number or a fraction");
}

TEST(LatentsFile, of_somebody_else_it_says_neither_model_nor_video) {
  const TemporaryFolder folder;
  const auto reader = LatentsReader::open(write(folder, "{" + entry("[1,1,1,2]", 8) + "}", 8));
  ASSERT_TRUE(reader) << describe(reader.error());
  EXPECT_FALSE(reader->head().model);
  EXPECT_FALSE(reader->head().video);
}

TEST(LatentsFile, one_that_is_cut_while_it_is_read_is_an_error) {
  const TemporaryFolder folder;
  const auto path = write(folder, "{" + entry("[1,1,1,2]", 8) + "}", 8);
  auto reader = LatentsReader::open(path);
  ASSERT_TRUE(reader);
  fs::resize_file(path, fs::file_size(path) - 4);
  float latent[2] = {};
  const auto read = reader->read(std::as_writable_bytes(std::span(latent)));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().subject, path.string());
  EXPECT_TRUE(read.error().message.starts_with("can't be read at byte "));
}

}  // namespace
}  // namespace tj::trainer
