// `trainer decode`: a file of latents to a video.
#include <torch/types.h>

#include <filesystem>

#include "trainer/checkpoint/catalog.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workloads/taehv/codec.h"
#include "trainer/workloads/taehv/codec_call.h"
#include "trainer/workloads/taehv/codec_commands.h"
#include "trainer/workloads/taehv/latents_file.h"

namespace tj::trainer {
namespace {
using Work = CodecProgress::Work;

constexpr Flag kFlags[] = {
    kWeightsFlag,
    {.name = "--in", .help = "a file of latents, .safetensors", .required = true},
    {.name = "--out",
     .help = "the video: .mkv (FFV1, without a loss), .mp4 (H.264), or a folder of PPM pictures",
     .required = true},
    {.name = "--frame-rate",
     .help = "frames in a second: 24 or 24000/1001 (that of the encoded video, else 24)"},
};

/// The video that latents are of, as their file says it, or, where it says nothing, all of it.
std::variant<VideoShape, Failure> video_of_file(const CommandCall& call, const CodecModel& codec,
                                                const LatentsHead& head) {
  const auto wrong = [&](const std::string& message) { return bad_input(call, message); };
  if (head.model.value_or(codec.name) != codec.name)
    return wrong("holds latents of " + *head.model + ", and --weights are of " + codec.name +
                 " (--model says it otherwise)");
  const auto& shape = head.tensor.shape;
  if (shape[1] != codec.config.latent_channels)
    return wrong("holds latents of " + std::to_string(shape[1]) + " channels; those of " +
                 codec.name + " have " + std::to_string(codec.config.latent_channels));
  const auto pixels = codec.config.pixels_of_latent();
  if (shape[2] > kFramePixelsMax / pixels || shape[3] > kFramePixelsMax / pixels)
    return wrong("holds latents of the shape " + shape_text(shape) + ", which are too large");
  const auto whole = video_of_latents(codec.config, shape);
  if (const auto why = too_large(whole)) return wrong("holds latents of a video that " + *why);
  auto video = head.video.value_or(whole);
  const bool is_larger =
      video.frames > whole.frames || video.height > whole.height || video.width > whole.width;
  if (is_larger || latents_shape(codec.config, video) != shape)
    return wrong("says that its latents " + shape_text(shape) + " are of " +
                 std::to_string(video.frames) + " frames of " + size_text(video) +
                 "; they are not");
  const auto rate = text_if_given(call, "--frame-rate");
  if (!rate) return video;
  const auto given = frame_rate_from(*rate);
  if (!given)
    return bad_config({.code = Code::invalid,
                       .message = "is \"" + *rate +
                                  "\"; it must be a number such as 24, or a fraction such as "
                                  "24000/1001",
                       .subject = "--frame-rate"});
  video.rate = *given;
  return video;
}

struct Decoding {
  const CodecModel& codec;
  LatentsReader& reader;
  VideoShape video;
  VideoWriter& writer;
  at::Device device;
};

at::ScalarType type_of_file(const LatentsHead& head) {
  if (head.tensor.dtype == kFloat32) return at::kFloat;
  return head.tensor.dtype == kFloat16 ? at::kHalf : at::kBFloat16;
}

CodecEnd decode_all(const Decoding& decoding, CodecProgress& progress) {
  VideoDecoder decoder(*decoding.codec.model, decoding.video);
  const auto& head = decoding.reader.head();
  const auto& shape = head.tensor.shape;
  auto latent = torch::empty({1, shape[1], shape[2], shape[3]}, type_of_file(head));
  const std::span place(static_cast<std::byte*>(latent.mutable_data_ptr()), latent.nbytes());
  for (std::int64_t i = 0, done = 0; i < head.count(); ++i) {
    if (const auto stop = stopped()) return stop;
    progress.begin(Work::input);
    if (const auto read = decoding.reader.read(place); !read) return bad_input(read.error());
    progress.begin(Work::model);
    const auto made = decoder.push(latent.to(decoding.device, at::kFloat));
    if (!made.defined()) continue;
    const auto frames = made.cpu();
    progress.begin(Work::output);
    if (const auto written = write_frames(decoding.writer, frames); !written)
      return bad_output(written.error());
    progress.reach(done += frames.size(0));
  }
  return std::nullopt;
}

CodecEnd decode(const CommandCall& call) {
  auto model = codec_model_of(call);
  if (const auto* const failure = std::get_if<Failure>(&model)) return *failure;
  const auto& codec = std::get<CodecModel>(model);
  const auto& in = text_of(call, "--in");
  std::error_code unreadable;
  if (!std::filesystem::exists(in, unreadable)) return bad_input(call, "is not there");
  auto reader = LatentsReader::open(in);
  if (!reader) return bad_input(reader.error());
  const auto found = video_of_file(call, codec, reader->head());
  if (const auto* const failure = std::get_if<Failure>(&found)) return *failure;
  const auto& video = std::get<VideoShape>(found);
  auto opened = writer_of(call, video);
  if (const auto* const failure = std::get_if<Failure>(&opened)) return *failure;
  auto& writer = *std::get<std::unique_ptr<VideoWriter>>(opened);
  CodecProgress progress("decode", video.frames);
  if (auto end = decode_all({.codec = codec,
                             .reader = *reader,
                             .video = video,
                             .writer = writer,
                             .device = device_of(call.gpu)},
                            progress))
    return end;
  return finish_output(&writer,
                       "decoded latents " + shape_text(reader->head().tensor.shape) + " to " +
                           std::to_string(video.frames) + " frames of " + size_text(video),
                       progress);
}

}  // namespace

WorkloadCommand decode_command() {
  return {.name = "decode",
          .title = "Makes a video of latents by a trained autoencoder",
          .flags = kFlags,
          .run = decode};
}

}  // namespace tj::trainer
