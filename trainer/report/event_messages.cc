#include "trainer/report/event_messages.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "trainer/report/protobuf_writer.h"

namespace tj::trainer {
namespace {
using Message = ProtobufWriter;

constexpr int kString = 7;           // tensorflow.DataType.DT_STRING
constexpr int kRgba = 4;             // colorspace of Summary.Image
constexpr int kHparamsVersion = 0;   // plugin_data.proto: PLUGIN_DATA_VERSION
constexpr int kTypeString = 1;       // hparams DataType
constexpr int kTypeNumber = 3;       // DATA_TYPE_FLOAT64
constexpr int kSessionLogStart = 1;  // SessionLog.SessionStatus

Message event(EventTime at) { return Message().real64(1, at.unix_seconds).integer(2, at.step); }

/// Event.summary with one value.
std::string summary_event(EventTime at, const Message& value) {
  return event(at).message(5, Message().message(1, value)).text();
}

/// Summary.Value.metadata: SummaryMetadata{plugin_data{plugin_name, content}}
Message metadata(std::string_view plugin, std::string_view content) {
  Message data;
  data.bytes(1, plugin);
  if (!content.empty()) data.bytes(2, content);
  return Message().message(1, data);
}

std::string hparams_record(EventTime at, std::string_view tag, int kind, const Message& inner) {
  const auto data = Message().integer(1, kHparamsVersion).message(kind, inner);
  return summary_event(at, Message().bytes(1, tag).message(9, metadata("hparams", data.text())));
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = failure == std::errc{} && end == text.data() + text.size();
  return is_whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string escaped(const std::string& cell) {
  std::string text;
  for (const char letter : cell) {
    if (letter == '|') text += '\\';
    text += letter;
  }
  return text;
}

}  // namespace

std::string file_version_event(double unix_seconds) {
  return Message().real64(1, unix_seconds).bytes(3, "brain.Event:2").text();
}

std::string session_start_event(EventTime at) {
  return event(at).message(7, Message().integer(1, kSessionLogStart)).text();
}

std::string scalars_event(EventTime at, std::span<const ScalarValue> values) {
  Message summary;
  for (const auto& [tag, value] : values)
    summary.message(1, Message().bytes(1, tag).real32(2, static_cast<float>(value)));
  return event(at).message(5, summary).text();
}

std::string text_event(EventTime at, std::string_view tag, std::string_view markdown) {
  const auto shape = Message().message(2, Message().integer(1, 1));
  const auto tensor = Message().integer(1, kString).message(2, shape).bytes(8, markdown);
  return summary_event(at,
                       Message().bytes(1, tag).message(8, tensor).message(9, metadata("text", "")));
}

std::string image_event(EventTime at, std::string_view tag, const PngImage& image) {
  const auto inner = Message()
                         .integer(1, image.height)
                         .integer(2, image.width)
                         .integer(3, kRgba)
                         .bytes(4, image.bytes);
  return summary_event(at, Message().bytes(1, tag).message(4, inner));
}

std::string histogram_event(EventTime at, std::string_view tag, std::span<const double> values) {
  std::vector<double> finite;
  std::ranges::copy_if(values, std::back_inserter(finite),
                       [](double x) { return std::isfinite(x); });
  if (finite.empty()) return event(at).text();
  const auto [least, greatest] = std::ranges::minmax(finite);
  const double width = (greatest - least) / kHistogramBuckets;
  std::vector<double> limits, counts(kHistogramBuckets, 0.0);
  for (int bucket = 1; bucket < kHistogramBuckets; ++bucket)
    limits.push_back(least + width * bucket);
  limits.push_back(greatest);
  double sum = 0, squares = 0;
  for (const double value : finite) {
    const auto above = std::ranges::upper_bound(limits, value) - limits.begin();
    counts[static_cast<std::size_t>(std::min<std::ptrdiff_t>(above, kHistogramBuckets - 1))] += 1;
    sum += value;
    squares += value * value;
  }
  const auto histogram = Message()
                             .real64(1, least)
                             .real64(2, greatest)
                             .real64(3, static_cast<double>(finite.size()))
                             .real64(4, sum)
                             .real64(5, squares)
                             .reals(6, limits)
                             .reals(7, counts);
  return summary_event(at, Message().bytes(1, tag).message(5, histogram));
}

std::string hparams_event(EventTime at, std::span<const Setting> settings) {
  Message start;
  for (const auto& setting : settings) {
    Message value;  // google.protobuf.Value
    if (const auto number = number_in(setting.value)) {
      value.real64(2, *number);
    } else {
      value.bytes(3, setting.value);
    }
    start.message(1, Message().bytes(1, setting.name).message(2, value));  // an entry of the map
  }
  start.real64(5, at.unix_seconds);
  return hparams_record(at, "_hparams_/session_start_info", 3, start);
}

std::string hparams_experiment_event(EventTime at, std::span<const Setting> settings,
                                     std::span<const std::string_view> metrics) {
  Message experiment;
  experiment.real64(3, at.unix_seconds);
  for (const auto& setting : settings) {
    const int type = number_in(setting.value) ? kTypeNumber : kTypeString;
    experiment.message(4, Message().bytes(1, setting.name).integer(4, type));
  }
  for (const auto tag : metrics)
    experiment.message(5, Message().message(1, Message().bytes(2, tag)));
  return hparams_record(at, "_hparams_/experiment", 2, experiment);
}

std::string hparams_end_event(EventTime at, SessionStatus status) {
  const auto end = Message().integer(1, static_cast<int>(status)).real64(2, at.unix_seconds);
  return hparams_record(at, "_hparams_/session_end_info", 4, end);
}

std::string settings_markdown(std::span<const Setting> settings) {
  std::string table = "| setting | value | from |\n|---|---|---|\n";
  for (const auto& setting : settings)
    table += "| " + escaped(setting.name) + " | " + escaped(setting.value) + " | " +
             escaped(setting.origin) + " |\n";
  return table;
}

}  // namespace tj::trainer
