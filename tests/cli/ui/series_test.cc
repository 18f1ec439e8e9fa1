// Series in bounded memory, and what they are read from: metrics.jsonl and event files.
#include "cli/ui/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/ui/run_files.h"
#include "tests/temporary_folder.h"

namespace tj::ui {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::SizeIs;

SeriesPoint point(long long step) {
  return {.time = static_cast<double>(step),
          .step = step,
          .value = 1.0 / static_cast<double>(step + 1)};
}

TEST(Series, keeps_all_while_there_are_few) {
  Series series;
  for (long long step = 0; step < 100; ++step) series.add(point(step));
  ASSERT_THAT(series.points(), SizeIs(100));
  EXPECT_EQ(series.points()[42], point(42));
}

TEST(Series, is_bounded_and_even_and_ends_with_the_newest) {
  Series series;
  constexpr long long kSteps = 100'003;
  for (long long step = 0; step < kSteps; ++step) series.add(point(step));
  const auto points = series.points();
  EXPECT_LE(points.size(), Series::kPointsMax);
  EXPECT_GE(points.size(), Series::kPointsMax / 2);
  EXPECT_EQ(points.front(), point(0));
  EXPECT_EQ(points.back(), point(kSteps - 1));
  const long long stride = points[1].step - points[0].step;
  for (std::size_t i = 1; i + 1 < points.size(); ++i)
    ASSERT_EQ(points[i].step - points[i - 1].step, stride) << i;
}

TEST(Series, leaves_out_what_is_no_number_and_what_comes_twice) {
  Series series;
  series.add({.time = 1, .step = 1, .value = std::nan("")});
  series.add({.time = 1, .step = 1, .value = std::numeric_limits<double>::infinity()});
  series.add(point(1));
  series.add(point(1));
  EXPECT_THAT(series.points(), SizeIs(1));
}

TEST(Series, a_sparkline_has_its_first_and_its_last) {
  Series series;
  EXPECT_THAT(sparkline(series, 5), SizeIs(0));
  for (long long step = 0; step < 100; ++step) series.add(point(step));
  const auto values = sparkline(series, 5);
  ASSERT_THAT(values, SizeIs(5));
  EXPECT_EQ(values.front(), point(0).value);
  EXPECT_EQ(values.back(), point(99).value);
}

TEST(MetricsLines, know_the_time_from_the_begin_and_the_steps) {
  MetricsLines lines;
  RunSeries series;
  for (const char* line : {R"({"step":1,"loss":9.0,"seconds":1.0})",  // before any begin
                           R"({"event":"begin","attempt":0,"at_step":0,"unix_seconds":1000.0})",
                           R"({"step":1,"loss":5.5,"tokens_per_second":2000.0,"seconds":2.0})",
                           R"({"step":2,"loss":null,"seconds":2.0})", "no JSON", "[]", "",
                           R"({"step":3,"loss":4.5,"frames_per_second":7.0,"seconds":2.0})"})
    lines.read(line, 0, series);
  EXPECT_THAT(series.loss.points(),
              ElementsAre(SeriesPoint{1002, 1, 5.5}, SeriesPoint{1006, 3, 4.5}));
  EXPECT_THAT(series.rate.points(),
              ElementsAre(SeriesPoint{1002, 1, 2000}, SeriesPoint{1006, 3, 7}));
}

TEST(MetricsLines, of_an_earlier_run_say_nothing) {
  MetricsLines lines;
  RunSeries series;
  lines.read(R"({"event":"begin","unix_seconds":1000.0})", 2000, series);
  lines.read(R"({"step":1,"loss":5.5,"seconds":2.0})", 2000, series);
  EXPECT_TRUE(series.loss.empty());
}

// An event file as TFRecordWriter and protobuf make it, without the right checksums.
std::string bytes_of(const auto& number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}
std::string field(int number, const std::string& content) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) +
         content;
}
std::string scalar_record(double time, char step, const std::string& tag, float value) {
  const std::string scalar = field(1, tag) + "\x15" + bytes_of(value);
  const std::string event = "\x09" + bytes_of(time) + "\x10" + step + field(5, field(1, scalar));
  return bytes_of(static_cast<std::uint64_t>(event.size())) + "crc." + event + "crc.";
}

TEST(EventFiles, are_read_record_by_record_however_they_come) {
  const std::string whole = scalar_record(1000.5, 7, "train/loss", 2.5F) +
                            scalar_record(1001.5, 8, "goodput/compute", 0.75F);
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    std::string bytes = whole.substr(0, cut);
    auto scalars = take_event_scalars(bytes);
    ASSERT_TRUE(scalars);
    bytes += whole.substr(cut);
    const auto rest = take_event_scalars(bytes);
    ASSERT_TRUE(rest);
    scalars->insert(scalars->end(), rest->begin(), rest->end());
    EXPECT_THAT(*scalars, ElementsAre(EventScalar{1000.5, 7, "train/loss", 2.5},
                                      EventScalar{1001.5, 8, "goodput/compute", 0.75}));
    EXPECT_EQ(bytes, "");
  }
}

TEST(EventFiles, that_are_none_are_found_out) {
  std::string huge = std::string(8, '\xff') + std::string(20, 'x');
  EXPECT_FALSE(take_event_scalars(huge));
  std::string record = scalar_record(1, 1, "loss", 1);
  record[12] = '\x0f';  // a wire type that there is not
  const auto nothing = take_event_scalars(record);
  ASSERT_TRUE(nothing);
  EXPECT_THAT(*nothing, SizeIs(0));
}

class RunFilesOnDisk : public testing::Test {
 protected:
  RunFilesOnDisk() { fs::create_directories(folder_ / "worker-0/out/tensorboard"); }
  void append(const std::string& file, const std::string& text) {
    std::ofstream(folder_ / file, std::ios::binary | std::ios::app) << text;
  }

  const TemporaryFolder kept_;
  const fs::path folder_ = kept_.path();
};

TEST_F(RunFilesOnDisk, grow_and_are_read_once) {
  append("worker-0/out/metrics.jsonl", R"({"event":"begin","unix_seconds":1000.0})"
                                       "\n"
                                       R"({"step":1,"loss":5.0,"seconds":1.0})"
                                       "\n"
                                       R"({"step":2,"lo)");
  RunFiles files({folder_, folder_ / "not-there"}, 0);
  files.read_news(100);
  EXPECT_THAT(files.series()->loss.points(), ElementsAre(SeriesPoint{1001, 1, 5}));
  append("worker-0/out/metrics.jsonl",
         R"(ss":4.0,"seconds":1.0})"
         "\n"
         R"({"event":"checkpoint","saved_step":2,"path":"/out/step-2"})"
         "\n");
  files.read_news(100.1);
  EXPECT_THAT(files.series()->loss.points(),
              ElementsAre(SeriesPoint{1001, 1, 5}, SeriesPoint{1002, 2, 4}));
  EXPECT_EQ(files.checkpoints().at(2), "/out/step-2");
}

TEST_F(RunFilesOnDisk, of_an_attempt_that_is_set_aside_stay_one_curve) {
  const std::string begin = R"({"event":"begin","unix_seconds":)";
  append("worker-0/out/metrics.jsonl", begin +
                                           "1000}\n"
                                           R"({"step":1,"loss":5.0,"seconds":1.0})"
                                           "\n");
  RunFiles files({folder_}, 0);
  files.read_news(100);
  fs::rename(folder_ / "worker-0", folder_ / "worker-0.previous");
  fs::create_directories(folder_ / "worker-0/out");
  append("worker-0/out/metrics.jsonl", begin +
                                           "2000}\n"
                                           R"({"step":1,"loss":3.0,"seconds":1.0})"
                                           "\n");
  files.read_news(101);  // the old path is another file now
  files.read_news(200);
  EXPECT_THAT(files.series()->loss.points(),
              ElementsAre(SeriesPoint{1001, 1, 5}, SeriesPoint{2001, 1, 3}));
}

TEST_F(RunFilesOnDisk, event_files_say_more_than_metrics) {
  append("worker-0/out/tensorboard/events.out.tfevents.1.host.1",
         scalar_record(1000.5, 1, "train/loss", 5.5F) +
             scalar_record(1000.5, 1, "goodput/compute", 0.5F) +
             scalar_record(1000.5, 1, "speed/tokens_per_second", 100.0F));
  append("worker-0/out/metrics.jsonl", R"({"event":"begin","unix_seconds":1000.0})"
                                       "\n"
                                       R"({"step":1,"loss":5.5,"seconds":1.0})"
                                       "\n");
  RunFiles files({folder_}, 0);
  files.read_news(100);
  EXPECT_THAT(files.series()->loss.points(), ElementsAre(SeriesPoint{1000.5, 1, 5.5}));
  EXPECT_THAT(files.series()->goodput.points(), ElementsAre(SeriesPoint{1000.5, 1, 0.5}));
  EXPECT_THAT(files.series()->rate.points(), ElementsAre(SeriesPoint{1000.5, 1, 100}));
}

}  // namespace
}  // namespace tj::ui
