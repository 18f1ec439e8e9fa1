// TensorBoard's messages as bytes: what one record of an event file holds. Pure.
// Sources: tensorboard/compat/proto/{event,summary}.proto, tensorboard/plugins/hparams/*.proto.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/values/settings.h"

namespace tj::trainer {

/// When something happened: both axes of TensorBoard.
struct EventTime {
  double unix_seconds = 0;
  std::int64_t step = 0;
};

struct ScalarValue {
  std::string_view tag;
  double value = 0;
};

struct PngImage {
  std::int64_t width = 0;  // pixels
  std::int64_t height = 0;
  std::string_view bytes;  // of the file
};

/// How the run ended, for the page of hyperparameters.
enum class SessionStatus { success = 1, failure = 2 };

/// The first record of a file.
std::string file_version_event(double unix_seconds);
/// A run starts anew from `at.step`: readers forget what an earlier file says of it and later.
std::string session_start_event(EventTime at);
std::string scalars_event(EventTime at, std::span<const ScalarValue> values);
/// `markdown` is rendered on the page.
std::string text_event(EventTime at, std::string_view tag, std::string_view markdown);
std::string image_event(EventTime at, std::string_view tag, const PngImage& image);
/// `values` in kHistogramBuckets buckets of equal width between the least and the greatest; those
/// that are not finite are left out, and without any other there is no value.
std::string histogram_event(EventTime at, std::string_view tag, std::span<const double> values);
inline constexpr int kHistogramBuckets = 30;
/// The run's settings as hyperparameters, a number where the text is one; `metrics`: tags of
/// scalars to show beside them.
std::string hparams_event(EventTime at, std::span<const Setting> settings);
std::string hparams_experiment_event(EventTime at, std::span<const Setting> settings,
                                     std::span<const std::string_view> metrics);
std::string hparams_end_event(EventTime at, SessionStatus status);

/// A table in Markdown: setting, value, from.
std::string settings_markdown(std::span<const Setting> settings);

}  // namespace tj::trainer
