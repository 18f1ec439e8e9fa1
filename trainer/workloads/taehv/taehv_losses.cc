// What TaehvWorkload learns from: the terms of the loss by the flags, the teacher, and all that a
// discriminator asks of the engine.
#include <limits>

#include "trainer/workloads/taehv/taehv_workload.h"

namespace tj::trainer {
namespace {

constexpr std::int64_t kStrideMax = 1000;
constexpr double kWeightMax = 1e6;
constexpr const char* kWeightRule = "it must be a number from 0 to 1000000";
constexpr std::int64_t kReplayMax = 1'000'000;
constexpr std::int64_t kReplayBytesMax = std::int64_t{64} << 30;

}  // namespace

/// Latents are cut where they are: what a clip shows must be what some of them stand for.
void TaehvWorkload::configure_teacher(FlagReader& reader) {
  if (!reader.is_given("--teacher-latents")) {
    clip_.stride_max = reader.whole("--frame-stride", {.value = "5"}, {1, kStrideMax});
    if (reader.is_given("--latent-weight"))
      reader.fail("--latent-weight", reader.given("--latent-weight"),
                  "it is of a teacher's latents, whose folder --teacher-latents names");
    return;
  }
  teacher_folder_ = reader.text("--teacher-latents");
  loss_.latent = reader.real("--latent-weight", {.value = "1"},
                             {std::numeric_limits<double>::denorm_min(), kWeightMax},
                             "it must be a number greater than 0, at most 1000000");
  clip_.stride_max = reader.whole("--frame-stride", {.value = "1", .origin = "--teacher-latents"},
                                  {1, kStrideMax});
  if (clip_.stride_max != 1)
    reader.fail("--frame-stride", std::to_string(clip_.stride_max),
                "it must be 1 with --teacher-latents, which are of successive frames");
  clip_.frame_step = config_.frames_of_latent();
  clip_.pixel_step = config_.pixels_of_latent();
  clip_.may_be_mirrored = false;
  reader.note("clips begin at",
              "multiples of " + std::to_string(clip_.frame_step) + " frames and " +
                  std::to_string(clip_.pixel_step) + " pixels, not mirrored",
              "--teacher-latents");
}

void TaehvWorkload::configure_loss(FlagReader& reader) {
  loss_.squared = reader.real("--mse-weight", {.value = "1"}, {0, kWeightMax}, kWeightRule);
  loss_.absolute = reader.real("--l1-weight", {.value = "0.1"}, {0, kWeightMax}, kWeightRule);
  if (loss_.squared + loss_.absolute == 0)
    reader.fail("--l1-weight", "0", "one of it and --mse-weight must be above 0");
}

void TaehvWorkload::configure_adversary(FlagReader& reader) {
  loss_.adversarial =
      reader.real("--adversarial-weight", {.value = "0"}, {0, kWeightMax}, kWeightRule);
  if (loss_.adversarial == 0) {
    if (reader.is_given("--replay-clips"))
      reader.fail("--replay-clips", reader.given("--replay-clips"),
                  "it is of a discriminator, which --adversarial-weight above 0 asks for");
    return;
  }
  const bool is_nano = preset_name_ == "taehv-nano";
  replay_rows_ = reader.whole(
      "--replay-clips", {.value = is_nano ? "512" : "16384", .origin = "preset " + preset_name_},
      {1, kReplayMax});
  const auto bytes = replay_rows_ * replay_shape().row_bytes();
  if (bytes > kReplayBytesMax)
    reader.fail("--replay-clips", std::to_string(replay_rows_),
                "so many would take " + grouped(bytes) + " bytes of each rank's memory, at most " +
                    grouped(kReplayBytesMax) + " may be");
  reader.note("replay memory", grouped(bytes) + " bytes on each rank and in each checkpoint",
              "computed");
}

ReplayShape TaehvWorkload::replay_shape() const {
  return {.side = clip_.side,
          .latent_channels = config_.latent_channels,
          .latent_side = clip_.side / config_.pixels_of_latent()};
}

std::optional<MemorySpec> TaehvWorkload::memory() const {
  if (loss_.adversarial == 0) return std::nullopt;
  return MemorySpec{
      .name = "replay", .rows = replay_rows_, .row_bytes = replay_shape().row_bytes()};
}

/// Of the author's recipe for the discriminator: AdamW at 3e-4, as torch has it, and a longer
/// memory of squares. The rate follows that of the schedule.
std::vector<ParameterGroup> TaehvWorkload::groups() const {
  if (loss_.adversarial == 0) return {};
  constexpr double kRate = 3e-4, kDecay = 0.01, kBeta1 = 0.9, kBeta2 = 0.99;
  return {{.pattern = "discriminator.*",
           .lr_scale = kRate / preset_lr_,
           .weight_decay = kDecay,
           .beta1 = kBeta1,
           .beta2 = kBeta2}};
}

ModelShape TaehvWorkload::shape() const {
  auto shape = taehv_shape(config_);
  if (loss_.adversarial == 0) return shape;
  shape.push_back({"discriminator_width", "--adversarial-weight", config_.encoder_width});
  shape.push_back({"replay_clips", "--replay-clips", replay_rows_});
  shape.push_back({"clip_size", "--clip-size", clip_.side});
  return shape;
}

/// Of a clip: the discriminator's own passes, its opinion of the real frames, and that of those
/// that were made with the gradient for them.
double TaehvWorkload::adversary_flops() const {
  if (loss_.adversarial == 0) return 0;
  constexpr double kForwardPasses = 3 + 1 + 2;
  const auto frames = clip_.frames - config_.frames_to_trim();
  const auto groups = (frames + kFramesOfGroup - 1) / kFramesOfGroup;
  return kForwardPasses * static_cast<double>(groups) *
         flops_of_discriminator(config_, clip_.side, clip_.side);
}

}  // namespace tj::trainer
