#include "trainer/checkpoint/folder.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
constexpr std::string_view kNamePrefix = "step-";
constexpr std::string_view kDraftPrefix = ".draft-";
constexpr std::int64_t kManifestBytesMax = 1 << 20;

bool is_checkpoint_name(const std::string& name) {
  if (!name.starts_with(kNamePrefix) || name.size() == kNamePrefix.size()) return false;
  return name.find_first_not_of("0123456789", kNamePrefix.size()) == std::string::npos;
}

/// Longer numbers are greater, equal lengths compare as text: names have leading zeros.
bool is_newer(const std::string& left, const std::string& right) {
  return left.size() != right.size() ? left.size() > right.size() : left > right;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  fs::directory_iterator entries(folder, failure);
  for (; !failure && entries != fs::directory_iterator(); entries.increment(failure)) {
    names.push_back(entries->path().filename().string());
  }
  return names;
}

Result<Manifest> verified_manifest(const fs::path& folder) {
  const auto text = read_small_file(folder / kManifestFile, kManifestBytesMax);
  if (!text) {
    return Error{
        .code = text.error().code, .message = text.error().message, .subject = kManifestFile};
  }
  auto manifest = manifest_from(*text);
  if (!manifest) return manifest;
  for (const char* const needed : {kModelFile, kOptimizerFile}) {
    if (manifest->files.contains(needed)) continue;
    return Error{.code = Code::invalid, .message = "is not in the manifest", .subject = needed};
  }
  for (const auto& [name, digest] : manifest->files) {
    if (const auto verified = verify_file(folder / name, digest); !verified)
      return verified.error();
  }
  return manifest;
}

Error folder_error(const fs::path& path, const std::string& what, const std::error_code& failure) {
  return {.code = Code::unavailable,
          .message = what + ": " + failure.message(),
          .subject = path.string()};
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%06lld", static_cast<long long>(step));
  return name;
}

std::vector<std::string> checkpoint_names(const fs::path& out) {
  auto names = names_in(out);
  std::erase_if(names, [](const std::string& name) { return !is_checkpoint_name(name); });
  std::ranges::sort(names, is_newer);
  return names;
}

CheckpointSearch newest_usable_checkpoint(const fs::path& out) {
  CheckpointSearch search;
  for (const auto& name : checkpoint_names(out)) {
    auto manifest = verified_manifest(out / name);
    if (manifest) {
      search.found = FoundCheckpoint{.folder = out / name, .manifest = std::move(*manifest)};
      break;
    }
    search.damaged.push_back(name + ": " + describe(manifest.error()));
  }
  return search;
}

Result<void> prepare_out_folder(const fs::path& out) {
  std::error_code failure;
  fs::create_directories(out, failure);
  if (failure) return folder_error("--out " + out.string(), "can't be created", failure);
  const fs::path probe = out / (std::string(kDraftPrefix) + "probe-" + std::to_string(::getpid()));
  const auto written = write_durably(probe, "probe");
  fs::remove(probe, failure);
  if (written) return {};
  return Error{.code = written.error().code,
               .message = "can't be written to: " + written.error().message,
               .subject = "--out " + out.string()};
}

CheckpointDraft::CheckpointDraft(fs::path out, fs::path folder)
    : out_(std::move(out)), folder_(std::move(folder)) {}

CheckpointDraft::CheckpointDraft(CheckpointDraft&& other) noexcept
    : out_(std::move(other.out_)), folder_(std::exchange(other.folder_, {})) {}

CheckpointDraft::~CheckpointDraft() {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Result<CheckpointDraft> CheckpointDraft::begin(const fs::path& out, std::int64_t step) {
  const fs::path folder = out / (std::string(kDraftPrefix) + checkpoint_name(step));
  std::error_code failure;
  fs::remove_all(folder, failure);  // of a run that died in this very place
  fs::create_directories(folder, failure);
  if (failure) return folder_error(folder, "can't be created", failure);
  return CheckpointDraft(out, folder);
}

Result<fs::path> CheckpointDraft::commit(const Manifest& manifest) {
  const auto written = write_durably(folder_ / kManifestFile, manifest_text(manifest));
  if (!written) return written.error();
  if (const auto synced = sync_folder(folder_); !synced) return synced.error();
  const fs::path path = out_ / checkpoint_name(manifest.step);
  std::error_code failure;
  // One of this name can only be a damaged one: a whole one would have been resumed from.
  fs::remove_all(path, failure);
  fs::rename(folder_, path, failure);
  if (failure) return folder_error(path, "can't get its name", failure);
  folder_.clear();
  if (const auto synced = sync_folder(out_); !synced) return synced.error();
  return path;
}

void prune_checkpoints(const fs::path& out, std::int64_t keep) {
  std::error_code ignored;
  for (const auto& name : names_in(out)) {
    if (name.starts_with(kDraftPrefix)) fs::remove_all(out / name, ignored);
  }
  if (keep == 0) return;
  const auto names = checkpoint_names(out);
  for (std::size_t index = static_cast<std::size_t>(keep); index < names.size(); ++index) {
    fs::remove_all(out / names[index], ignored);
  }
}

}  // namespace tj::trainer
