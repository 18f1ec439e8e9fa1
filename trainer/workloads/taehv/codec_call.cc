#include "trainer/workloads/taehv/codec_call.h"

#include "trainer/data/video/video_files.h"
#include "trainer/process/early_stop.h"
#include "trainer/process/stop_request.h"
#include "trainer/workloads/taehv/codec.h"

namespace tj::trainer {

Failure bad_input(const CommandCall& call, const std::string& message) {
  return bad_input({.code = Code::invalid, .message = message, .subject = text_of(call, "--in")});
}

Failure bad_input(const Error& error) {
  return bad_data(
      Error{.code = error.code, .message = error.message, .subject = "--in " + error.subject});
}

Failure bad_output(const Error& error) {
  const std::string message = "--out " + describe(error);
  if (error.code == Code::conflict)
    return {.exit_code = exit_code::kBadConfig, .reason = "OutInUse", .message = message};
  if (error.code == Code::invalid)
    return {.exit_code = exit_code::kBadConfig, .reason = "BadConfig", .message = message};
  return {.exit_code = exit_code::kInputOutput, .reason = "OutNotWritable", .message = message};
}

CodecEnd stopped() {
  if (stop_signal() == 0) return std::nullopt;
  return Failure{.exit_code = exit_code::kInterrupted,
                 .reason = "Interrupted",
                 .message = asked_by(stop_signal()) + "; nothing is written"};
}

const std::string& text_of(const CommandCall& call, const char* flag) {
  return call.flags.find(flag)->second;
}

std::optional<std::string> text_if_given(const CommandCall& call, const char* flag) {
  const auto found = call.flags.find(flag);
  return found == call.flags.end() ? std::nullopt : std::optional(found->second);
}

std::string size_text(const VideoShape& video) {
  return std::to_string(video.width) + " x " + std::to_string(video.height);
}

std::optional<std::string> too_large(const VideoShape& video) {
  if (video.width <= kFramePixelsMax / video.height) return std::nullopt;
  return "is " + size_text(video) + " pixels; a frame may have " + std::to_string(kFramePixelsMax);
}

std::variant<CodecModel, Failure> codec_model_of(const CommandCall& call) {
  auto codec = open_codec_model({.weights = text_of(call, "--weights"),
                                 .name = text_if_given(call, "--model"),
                                 .options = {.precision = call.precision, .gpu = call.gpu}});
  if (const auto stop = stopped()) return *stop;
  if (!codec) return bad_data(codec.error());
  return std::move(*codec);
}

std::variant<std::unique_ptr<Video>, Failure> video_of(const CommandCall& call) {
  const auto found = find_videos({text_of(call, "--in")}, "--in");
  if (!found) return bad_data(found.error());
  if (found->size() > 1)
    return bad_input(call,
                     "holds " + std::to_string(found->size()) + " videos; it must be one of them");
  VideoOpener opener(VideoOpener::default_plugin());
  if (const auto ready = opener.prepare_for(*found); !ready) return bad_data(ready.error());
  auto video = opener.open(found->front());
  if (const auto stop = stopped()) return *stop;
  if (!video) return bad_input(video.error());
  if (const auto why = too_large((*video)->shape())) return bad_input(call, *why);
  return std::move(*video);
}

std::variant<std::unique_ptr<VideoWriter>, Failure> writer_of(const CommandCall& call,
                                                              const VideoShape& shape) {
  auto writer = create_video(
      {.out = text_of(call, "--out"), .shape = shape, .plugin = VideoOpener::default_plugin()});
  if (!writer) return bad_output(writer.error());
  return std::move(*writer);
}

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

Result<void> write_frames(VideoWriter& writer, const at::Tensor& frames) {
  for (std::int64_t i = 0; i < frames.size(0); ++i)
    if (auto written = writer.write(bytes_of(frames[i])); !written) return written;
  return {};
}

}  // namespace tj::trainer
