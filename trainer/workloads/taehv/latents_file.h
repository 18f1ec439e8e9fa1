// The latents of one video as a file: safetensors with one tensor, `latents` [T, C, H, W], and in
// its metadata what it takes to make the video again. Written and read latent by latent, in the
// memory of one. No torch.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "contract/result.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/data/video/video.h"
#include "trainer/process/durable_file.h"
#include "trainer/process/output_draft.h"

namespace tj::trainer {

inline constexpr const char* kLatentsTensor = "latents";

struct LatentsHead {
  TensorHead tensor;  // four extents; F32, F16 or BF16
  // Of a file that somebody else wrote these are absent.
  std::optional<std::string> model;  // by its --model
  std::optional<VideoShape> video;   // that they are of

  std::int64_t count() const { return tensor.shape[0]; }
  std::size_t bytes_of_latent() const;
};

class LatentsWriter {
 public:
  /// `more` goes into the metadata beside what `head` says. Fails with Code::conflict where `out`
  /// is there already, with Code::unavailable where the disk has no room for it.
  static Result<LatentsWriter> create(const std::filesystem::path& out, const LatentsHead& head,
                                      const SafetensorsMetadata& more);
  /// The next latent.
  Result<void> write(std::span<const std::byte> latent);
  /// After the last one: the file gets its name.
  Result<void> finish();

 private:
  LatentsWriter(OutputDraft draft, DurableFile file, const LatentsHead& head);
  OutputDraft draft_;
  DurableFile file_;
  std::size_t latent_bytes_;
  std::int64_t left_;  // latents
};

class LatentsReader {
 public:
  /// Fails with Code::invalid for what is no file of latents; nothing is allocated for what it
  /// merely says.
  static Result<LatentsReader> open(const std::filesystem::path& file);
  const LatentsHead& head() const { return head_; }
  /// The next latent, as it lies in the file. Fails as DataFile::read().
  Result<void> read(std::span<std::byte> latent);

 private:
  LatentsReader(SafetensorsFile file, LatentsHead head, std::int64_t begin)
      : file_(std::move(file)), head_(std::move(head)), next_(begin) {}
  SafetensorsFile file_;
  LatentsHead head_;
  std::int64_t next_;  // where the next one begins in the file
};

}  // namespace tj::trainer
