#include "trainer/workloads/taehv/latents_file.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "trainer/checkpoint/catalog.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

// Of the metadata, which holds texts alone.
constexpr const char* kModelKey = "model";
constexpr const char* kFramesKey = "frames";
constexpr const char* kHeightKey = "height";
constexpr const char* kWidthKey = "width";
constexpr const char* kRateKey = "frame_rate";

Error wrong(const fs::path& file, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = file.string()};
}

SafetensorsMetadata metadata_of(const LatentsHead& head, const SafetensorsMetadata& more) {
  SafetensorsMetadata metadata = more;
  metadata["format"] = "pt";
  if (head.model) metadata[kModelKey] = *head.model;
  if (!head.video) return metadata;
  metadata[kFramesKey] = std::to_string(head.video->frames);
  metadata[kHeightKey] = std::to_string(head.video->height);
  metadata[kWidthKey] = std::to_string(head.video->width);
  if (head.video->rate.is_known()) metadata[kRateKey] = to_string(head.video->rate);
  return metadata;
}

/// In whose words the disk's answer is told: not in those of the draft's.
Error named(const fs::path& out, const Error& error) {
  return {.code = error.code, .message = error.message, .subject = out.string()};
}

/// What the disk says before it is asked to take so much; what another process takes meanwhile is
/// an error of write().
Result<void> has_room(const fs::path& out, std::size_t bytes) {
  std::error_code unknown;
  const auto space = fs::space(out.has_parent_path() ? out.parent_path() : fs::path("."), unknown);
  if (unknown || space.available >= bytes) return {};
  return Error{.code = Code::unavailable,
               .message = "needs " + grouped(static_cast<std::int64_t>(bytes)) + " bytes, and " +
                          grouped(static_cast<std::int64_t>(space.available)) +
                          " are free on its disk",
               .subject = out.string()};
}

std::optional<std::string> text_of(const SafetensorsMetadata& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? std::nullopt : std::optional(found->second);
}

/// A number of the metadata.
Result<std::int64_t> count_of(const fs::path& file, const SafetensorsMetadata& metadata,
                              const char* key) {
  const auto text = text_of(metadata, key).value_or("");
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure == std::errc{} && end == text.data() + text.size() && value > 0) return value;
  return wrong(file, "says " + std::string(key) + " \"" + text +
                         "\" in its metadata; it must be a whole number from 1");
}

Result<std::optional<VideoShape>> video_of(const fs::path& file,
                                           const SafetensorsMetadata& metadata) {
  if (!metadata.contains(kFramesKey)) return std::optional<VideoShape>();
  VideoShape video;
  for (const auto& [key, extent] :
       {std::pair(kFramesKey, &video.frames), std::pair(kHeightKey, &video.height),
        std::pair(kWidthKey, &video.width)}) {
    const auto count = count_of(file, metadata, key);
    if (!count) return count.error();
    *extent = *count;
  }
  if (const auto text = text_of(metadata, kRateKey)) {
    const auto rate = frame_rate_from(*text);
    if (!rate)
      return wrong(file, "says frame_rate \"" + *text +
                             "\" in its metadata; it must be a number or a fraction");
    video.rate = *rate;
  }
  return std::optional(video);
}

/// The head of a file that is well formed, and where its latents begin.
Result<std::pair<LatentsHead, std::int64_t>> head_of(const fs::path& path,
                                                     const SafetensorsFile& file) {
  const auto* const tensor = file.find(kLatentsTensor);
  if (tensor == nullptr) return wrong(path, "has no tensor \"latents\"");
  const bool has_extents =
      tensor->shape.size() == 4 && std::ranges::all_of(tensor->shape, [](auto n) { return n > 0; });
  if (!has_extents)
    return wrong(path, "has latents of the shape " + shape_text(tensor->shape) +
                           "; it must be [number, channels, height, width]");
  if (const auto type = unreadable_type(tensor->dtype))
    return wrong(path, "has latents of type " + *type);
  auto video = video_of(path, file.metadata());
  if (!video) return video.error();
  LatentsHead head{.tensor = {.name = tensor->name, .shape = tensor->shape, .dtype = tensor->dtype},
                   .model = text_of(file.metadata(), kModelKey),
                   .video = *video};
  return std::pair(std::move(head), tensor->begin);
}

}  // namespace

std::size_t LatentsHead::bytes_of_latent() const {
  return static_cast<std::size_t>(element_count(tensor.shape) / count()) *
         element_bytes(tensor.dtype);
}

LatentsWriter::LatentsWriter(OutputDraft draft, DurableFile file, const LatentsHead& head)
    : draft_(std::move(draft)),
      file_(std::move(file)),
      latent_bytes_(head.bytes_of_latent()),
      left_(head.count()) {}

Result<LatentsWriter> LatentsWriter::create(const fs::path& out, const LatentsHead& head,
                                            const SafetensorsMetadata& more) {
  auto draft = OutputDraft::begin(out);
  if (!draft) return draft.error();
  const auto text = safetensors_head(head.tensor, metadata_of(head, more));
  const auto bytes = text.size() + static_cast<std::size_t>(head.count()) * head.bytes_of_latent();
  if (const auto room = has_room(draft->out(), bytes); !room) return room.error();
  auto file = DurableFile::create(draft->path());
  if (!file) return named(draft->out(), file.error());
  if (const auto written = file->write(std::as_bytes(std::span(text))); !written)
    return named(draft->out(), written.error());
  return LatentsWriter(std::move(*draft), std::move(*file), head);
}

Result<void> LatentsWriter::write(std::span<const std::byte> latent) {
  TJ_CHECK(latent.size() == latent_bytes_ && left_ > 0, "one whole latent of those announced");
  --left_;
  if (const auto written = file_.write(latent); !written)
    return named(draft_.out(), written.error());
  return {};
}

Result<void> LatentsWriter::finish() {
  TJ_CHECK(left_ == 0, "all latents that the head announces");
  if (const auto finished = file_.finish(); !finished) return named(draft_.out(), finished.error());
  return draft_.commit();
}

Result<LatentsReader> LatentsReader::open(const fs::path& path) {
  auto file = SafetensorsFile::open(path);
  if (!file) return named(path, file.error());
  auto head = head_of(path, *file);
  if (!head) return head.error();
  return LatentsReader(std::move(*file), std::move(head->first), head->second);
}

Result<void> LatentsReader::read(std::span<std::byte> latent) {
  if (const auto read = file_.data().read(next_, latent); !read) return read;
  next_ += static_cast<std::int64_t>(latent.size());
  return {};
}

}  // namespace tj::trainer
