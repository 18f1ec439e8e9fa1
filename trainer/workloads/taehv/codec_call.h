// What `trainer encode`, `decode` and `reconstruct` have in common: what they open, and in which
// words they fail. Includes torch.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "trainer/data/video/video_writer.h"
#include "trainer/process/lines.h"
#include "trainer/workload/command.h"
#include "trainer/workloads/taehv/codec_model.h"
#include "trainer/workloads/taehv/codec_progress.h"

namespace tj::trainer {

inline constexpr Flag kWeightsFlag{
    .name = "--weights",
    .help =
        "of the model: the --out of a training (its newest checkpoint), a checkpoint, or a "
        ".safetensors or .pth file",
    .required = true};
inline constexpr Flag kVideoFlag{
    .name = "--in", .help = "a video, or a folder of pictures, a frame each", .required = true};

/// What ends a command early; absent: nothing does.
using CodecEnd = std::optional<Failure>;

/// The text of a flag that is required.
const std::string& text_of(const CommandCall& call, const char* flag);
std::optional<std::string> text_if_given(const CommandCall& call, const char* flag);

/// The text of --in names something that can't be used.
Failure bad_input(const CommandCall& call, const std::string& message);
/// The same of a file, which the error names.
Failure bad_input(const Error& error);
/// --out can't be made: what the user can mend is a wrong flag, what the disk says may be otherwise
/// another time.
Failure bad_output(const Error& error);
/// Once a signal has asked for it.
CodecEnd stopped();

/// "96 x 64", width first
std::string size_text(const VideoShape& video);
/// Why frames of this size are not taken; absent: they are.
std::optional<std::string> too_large(const VideoShape& video);

/// What --weights and --model say.
std::variant<CodecModel, Failure> codec_model_of(const CommandCall& call);
/// The one video of --in.
std::variant<std::unique_ptr<Video>, Failure> video_of(const CommandCall& call);
/// What --out names.
std::variant<std::unique_ptr<VideoWriter>, Failure> writer_of(const CommandCall& call,
                                                              const VideoShape& shape);

/// Of a contiguous tensor in the host's memory, which outlives them.
std::span<const std::byte> bytes_of(const at::Tensor& tensor);
/// Frames [frames, H, W, 3] in the host's memory.
Result<void> write_frames(VideoWriter& writer, const at::Tensor& frames);

/// What was written gets its name, and what was `done` is said with the time that it took. Without
/// a `writer` nothing was written.
template <typename Writer>
CodecEnd finish_output(Writer* writer, const std::string& done, CodecProgress& progress) {
  progress.begin(CodecProgress::Work::output);
  if (writer != nullptr)
    if (const auto finished = writer->finish(); !finished) return bad_output(finished.error());
  say(done + " " + progress.end_text());
  return std::nullopt;
}

}  // namespace tj::trainer
