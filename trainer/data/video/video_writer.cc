#include "trainer/data/video/video_writer.h"

#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "trainer/data/video/ppm_picture.h"
#include "trainer/data/video/video_plugin.h"
#include "trainer/process/output_draft.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

class PpmFolder final : public VideoWriter {
 public:
  PpmFolder(OutputDraft draft, const VideoShape& shape) : draft_(std::move(draft)), shape_(shape) {}

  Result<void> write(std::span<const std::byte> rgb) override {
    char name[32];
    std::snprintf(name, sizeof name, "%08lld.ppm", static_cast<long long>(frames_++));
    return write_ppm_picture(draft_.path() / name, shape_, rgb);
  }

  Result<void> finish() override { return draft_.commit(); }

 private:
  OutputDraft draft_;
  const VideoShape shape_;
  std::int64_t frames_ = 0;
};

class LibavFile final : public VideoWriter {
 public:
  LibavFile(OutputDraft draft, const VideoPlugin& plugin, void* writer)
      : draft_(std::move(draft)), plugin_(plugin), writer_(writer) {}
  ~LibavFile() override { close(); }
  LibavFile(const LibavFile&) = delete;
  LibavFile& operator=(const LibavFile&) = delete;

  Result<void> write(std::span<const std::byte> rgb) override {
    PluginText why;
    if (plugin_.write(writer_, reinterpret_cast<const unsigned char*>(rgb.data()), &why)) return {};
    return failed(why);
  }

  Result<void> finish() override {
    PluginText why;
    if (!plugin_.finish(writer_, &why)) return failed(why);
    close();
    return draft_.commit();
  }

 private:
  Error failed(const PluginText& why) const {
    return {.code = Code::unavailable, .message = why.bytes, .subject = draft_.out().string()};
  }
  void close() {
    if (writer_ != nullptr) plugin_.close_writer(std::exchange(writer_, nullptr));
  }

  OutputDraft draft_;  // goes after the file is closed
  const VideoPlugin& plugin_;
  void* writer_;
};

Result<std::unique_ptr<VideoWriter>> create_folder(OutputDraft draft, const VideoShape& shape) {
  std::error_code failure;
  fs::create_directory(draft.path(), failure);
  if (failure)
    return Error{.code = Code::unavailable,
                 .message = "can't be created: " + failure.message(),
                 .subject = draft.out().string()};
  return std::unique_ptr<VideoWriter>(std::make_unique<PpmFolder>(std::move(draft), shape));
}

Result<std::unique_ptr<VideoWriter>> create_file(OutputDraft draft, const char* format,
                                                 const VideoRequest& request) {
  const auto plugin = load_video_plugin(request.plugin);
  if (!plugin)
    return Error{.code = Code::invalid,
                 .message = plugin.error().message,
                 .subject = plugin.error().subject};
  const auto& shape = request.shape;
  const auto rate = shape.rate.is_known() ? shape.rate : kRateDefault;
  const VideoInfo info{.height = static_cast<int>(shape.height),
                       .width = static_cast<int>(shape.width),
                       .rate_frames = rate.numerator,
                       .rate_seconds = rate.denominator};
  PluginText why;
  void* const writer = (*plugin)->open_writer(draft.path().c_str(), format, &info, &why);
  if (writer == nullptr)
    return Error{.code = Code::unavailable, .message = why.bytes, .subject = draft.out().string()};
  return std::unique_ptr<VideoWriter>(
      std::make_unique<LibavFile>(std::move(draft), **plugin, writer));
}

}  // namespace

Result<std::unique_ptr<VideoWriter>> create_video(const VideoRequest& request) {
  auto draft = OutputDraft::begin(request.out);
  if (!draft) return draft.error();
  const auto ending = draft->out().extension();
  if (ending.empty()) return create_folder(std::move(*draft), request.shape);
  if (ending == ".mkv") return create_file(std::move(*draft), "matroska", request);
  if (ending == ".mp4") return create_file(std::move(*draft), "mp4", request);
  return Error{.code = Code::invalid,
               .message = "ends with " + ending.string() +
                          "; it must be .mkv (FFV1, without a loss), .mp4 (H.264), or a name "
                          "without an ending, of a folder of PPM pictures",
               .subject = request.out.string()};
}

}  // namespace tj::trainer
