// `trainer reconstruct`: a video to latents and back in one stream, and how close it comes.
#include <torch/types.h>

#include <cstdio>
#include <deque>

#include "trainer/process/lines.h"
#include "trainer/workload/initial_tensor.h"
#include "trainer/workloads/taehv/codec.h"
#include "trainer/workloads/taehv/codec_call.h"
#include "trainer/workloads/taehv/codec_commands.h"

namespace tj::trainer {
namespace {
using Work = CodecProgress::Work;

constexpr Flag kFlags[] = {
    kWeightsFlag,
    kVideoFlag,
    {.name = "--out", .help = "where the reconstruction is written, as by decode (nowhere)"},
};

struct Reconstruction {
  const CodecModel& codec;
  const Video& video;
  VideoWriter* writer;  // null: nobody wants to see it
  at::Device device;
};

/// Encodes and decodes in one stream: what waits for its reconstruction are the frames of a latent.
class Reconstructor {
 public:
  Reconstructor(const Reconstruction& what, CodecProgress& progress)
      : what_(what),
        progress_(progress),
        reader_(what.video, what.device),
        encoder_(*what.codec.model, what.codec.config),
        decoder_(*what.codec.model, what.video.shape()) {}

  CodecEnd run() {
    while (true) {
      if (const auto stop = stopped()) return stop;
      progress_.begin(Work::input);
      const auto frames = reader_.next();
      if (!frames) return bad_input(frames.error());
      progress_.begin(Work::model);
      const bool is_end = !frames->defined();
      for (std::int64_t i = 0; !is_end && i < frames->size(0); ++i)
        waiting_.push_back(frames->narrow(0, i, 1));
      for (const auto& latent : is_end ? encoder_.finish() : encoder_.push(*frames))
        if (auto end = take(latent)) return end;
      if (is_end) return std::nullopt;
    }
  }

  const FrameComparison& comparison() const { return comparison_; }

 private:
  CodecEnd take(const at::Tensor& latent) {
    progress_.begin(Work::model);
    const auto made = decoder_.push(latent);
    if (!made.defined()) return std::nullopt;
    std::vector<at::Tensor> originals;
    for (std::int64_t i = 0; i < made.size(0); ++i) {
      originals.push_back(waiting_.front());
      waiting_.pop_front();
    }
    comparison_.add(at::cat(originals), made);
    progress_.begin(Work::output);
    if (what_.writer != nullptr)
      if (const auto written = write_frames(*what_.writer, made.cpu()); !written)
        return bad_output(written.error());
    progress_.reach(comparison_.frames());
    return std::nullopt;
  }

  const Reconstruction what_;
  CodecProgress& progress_;
  FrameReader reader_;
  VideoEncoder encoder_;
  VideoDecoder decoder_;
  std::deque<at::Tensor> waiting_;
  FrameComparison comparison_;
};

std::string comparison_text(const FrameComparison& comparison) {
  char text[96];
  std::snprintf(text, sizeof text, "PSNR %.2f dB", comparison.psnr());
  std::string line = text;
  if (const auto ssim = comparison.ssim()) {
    std::snprintf(text, sizeof text, " | SSIM %.4f", *ssim);
    line += text;
  }
  return line + " | " + std::to_string(comparison.frames()) + " frames compared";
}

CodecEnd reconstruct(const CommandCall& call) {
  auto model = codec_model_of(call);
  if (const auto* const failure = std::get_if<Failure>(&model)) return *failure;
  auto opened = video_of(call);
  if (const auto* const failure = std::get_if<Failure>(&opened)) return *failure;
  const auto& video = *std::get<std::unique_ptr<Video>>(opened);
  std::unique_ptr<VideoWriter> writer;
  if (text_if_given(call, "--out")) {
    auto created = writer_of(call, video.shape());
    if (const auto* const failure = std::get_if<Failure>(&created)) return *failure;
    writer = std::move(std::get<std::unique_ptr<VideoWriter>>(created));
  }
  CodecProgress progress("reconstruct", video.shape().frames);
  Reconstructor reconstructor({.codec = std::get<CodecModel>(model),
                               .video = video,
                               .writer = writer.get(),
                               .device = device_of(call.gpu)},
                              progress);
  if (auto end = reconstructor.run()) return end;
  const auto compared = comparison_text(reconstructor.comparison());
  if (auto end = finish_output(writer.get(),
                               "reconstructed " + std::to_string(video.shape().frames) +
                                   " frames of " + size_text(video.shape()),
                               progress))
    return end;
  say(compared);
  return std::nullopt;
}

}  // namespace

WorkloadCommand reconstruct_command() {
  return {.name = "reconstruct",
          .title = "Makes latents of a video and the video again, and says how close it is",
          .flags = kFlags,
          .run = reconstruct};
}

}  // namespace tj::trainer
