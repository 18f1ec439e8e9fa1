#include "trainer/checkpoint/source_checkpoint.h"

#include <algorithm>
#include <string>
#include <utility>

#include "trainer/process/durable_file.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kManifestBytesMax = 1 << 20;

Error wrong(const fs::path& subject, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = subject.string()};
}

/// Files are named without their folder where they are opened, and the user may have many.
Error in_folder(const fs::path& folder, const Error& error) {
  return wrong(folder, describe(error));
}

bool is_of_group(const std::string& file, const GroupStems& stems) {
  return std::ranges::any_of(stems, [&](const auto& stem) {
    return file.starts_with(stem + ".") || file.starts_with(stem + "-");
  });
}

Result<Manifest> manifest_of(const fs::path& folder) {
  const auto text = read_small_file(folder / kManifestFile, kManifestBytesMax);
  if (!text) return in_folder(folder, text.error());
  auto manifest = manifest_from(*text);
  if (!manifest) return in_folder(folder, manifest.error());
  return manifest;
}

bool has_manifest(const fs::path& folder) {
  std::error_code unreadable;
  return fs::exists(folder / kManifestFile, unreadable);
}

}  // namespace

bool has_checkpoint(const fs::path& from) {
  return has_manifest(from) || !checkpoint_names(from).empty();
}

Result<SourceCheckpoint> source_checkpoint(const fs::path& from, const GroupStems& stems) {
  if (!has_manifest(from)) {
    auto search = newest_usable_checkpoint(from);
    if (search.found)
      return SourceCheckpoint{.checkpoint = std::move(*search.found),
                              .damaged = std::move(search.damaged)};
    return wrong(from, search.damaged.empty() ? "holds no checkpoint"
                                              : "has no checkpoint that can be used: " +
                                                    describe(search.damaged.front()));
  }
  auto manifest = manifest_of(from);
  if (!manifest) return manifest.error();
  for (const auto& [name, digest] : manifest->files) {
    if (!is_of_group(name, stems)) continue;
    if (const auto verified = verify_file(from / name, digest); !verified)
      return in_folder(from, verified.error());
  }
  return SourceCheckpoint{.checkpoint = {.folder = from, .manifest = std::move(*manifest)},
                          .damaged = {}};
}

}  // namespace tj::trainer
