// `trainer encode`: a video to a file of latents.
#include <torch/types.h>

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
    kVideoFlag,
    {.name = "--out", .help = "the file of latents, .safetensors", .required = true},
    {.name = "--latent-type", .help = "of the latents in the file: fp32 or fp16 (fp32)"},
};

struct Encoding {
  const CodecModel& codec;
  const Video& video;
  LatentsWriter& writer;
  at::Device device;
  at::ScalarType type;  // in the file
};

Result<void> write_latents(const Encoding& encoding, const std::vector<at::Tensor>& latents) {
  for (const auto& latent : latents) {
    const auto stored = latent.to(at::kCPU, encoding.type).contiguous();
    if (auto written = encoding.writer.write(bytes_of(stored)); !written) return written;
  }
  return {};
}

CodecEnd encode_all(const Encoding& encoding, CodecProgress& progress) {
  FrameReader reader(encoding.video, encoding.device);
  VideoEncoder encoder(*encoding.codec.model, encoding.codec.config);
  std::int64_t done = 0;
  while (true) {
    if (const auto stop = stopped()) return stop;
    progress.begin(Work::input);
    const auto frames = reader.next();
    if (!frames) return bad_input(frames.error());
    progress.begin(Work::model);
    const bool is_end = !frames->defined();
    const auto latents = is_end ? encoder.finish() : encoder.push(*frames);
    if (const auto written = write_latents(encoding, latents); !written)
      return bad_output(written.error());
    if (is_end) return std::nullopt;
    progress.reach(done += frames->size(0));
  }
}

LatentsHead head_of(const CodecModel& codec, const VideoShape& video, const char* dtype) {
  return {.tensor = {.name = kLatentsTensor,
                     .shape = latents_shape(codec.config, video),
                     .dtype = dtype},
          .model = codec.name,
          .video = video};
}

/// For programs that make the video again by other means.
SafetensorsMetadata facts_of(const TaehvConfig& config) {
  return {{"patch", std::to_string(config.patch)},
          {"frames_before", std::to_string(config.frames_to_trim())}};
}

CodecEnd encode(const CommandCall& call) {
  const auto type = text_if_given(call, "--latent-type").value_or("fp32");
  if (type != "fp32" && type != "fp16")
    return bad_config({.code = Code::invalid,
                       .message = "is \"" + type + "\"; it must be fp32 or fp16",
                       .subject = "--latent-type"});
  auto model = codec_model_of(call);
  if (const auto* const failure = std::get_if<Failure>(&model)) return *failure;
  auto video = video_of(call);
  if (const auto* const failure = std::get_if<Failure>(&video)) return *failure;
  const auto& codec = std::get<CodecModel>(model);
  const auto& source = *std::get<std::unique_ptr<Video>>(video);
  const bool is_half = type == "fp16";
  const auto head = head_of(codec, source.shape(), is_half ? kFloat16 : kFloat32);
  auto writer = LatentsWriter::create(text_of(call, "--out"), head, facts_of(codec.config));
  if (!writer) return bad_output(writer.error());
  CodecProgress progress("encode", source.shape().frames);
  if (auto end = encode_all({.codec = codec,
                             .video = source,
                             .writer = *writer,
                             .device = device_of(call.gpu),
                             .type = is_half ? at::kHalf : at::kFloat},
                            progress))
    return end;
  return finish_output(&*writer,
                       "encoded " + std::to_string(source.shape().frames) + " frames of " +
                           size_text(source.shape()) + " to latents " +
                           shape_text(head.tensor.shape),
                       progress);
}

}  // namespace

WorkloadCommand encode_command() {
  return {.name = "encode",
          .title = "Makes latents of a video by a trained autoencoder",
          .flags = kFlags,
          .run = encode};
}

}  // namespace tj::trainer
