#include "trainer/checkpoint/folder.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <thread>
#include <utility>

#include "trainer/checkpoint/catalog.h"
#include "trainer/checkpoint/file_plan.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
constexpr std::string_view kNamePrefix = "step-";
constexpr std::string_view kDraftPrefix = ".draft-";
constexpr std::string_view kDamagedPrefix = "damaged-";
constexpr int kSameNameMax = 1000;
constexpr std::int64_t kManifestBytesMax = 1 << 20;
constexpr std::size_t kVerifiersMax = 8;

bool is_checkpoint_name(const std::string& name) {
  if (!name.starts_with(kNamePrefix) || name.size() == kNamePrefix.size()) return false;
  return name.find_first_not_of("0123456789", kNamePrefix.size()) == std::string::npos;
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

/// Says more about a file that is not what the manifest says, if the file or the manifest knows it:
/// " (it is model-00002-of-00002.safetensors)" or " (it is of step 25)".
std::string looks_like(const fs::path& file, const Manifest& manifest,
                       const std::function<bool()>& should_stop) {
  for (const auto& [name, digest] : manifest.files) {
    if (name != file.filename() && verify_file(file, digest, should_stop))
      return " (it is " + name + ")";
  }
  const auto tensors = SafetensorsFile::open(file);
  if (!tensors) return "";
  const auto step = tensors->metadata().find(kStepKey);
  if (step == tensors->metadata().end() || step->second == std::to_string(manifest.step)) return "";
  return " (it is of step " + step->second + ")";
}

/// All files beside each other, since a disk serves several readers faster than one. The failure of
/// the first that is not what the manifest says.
Result<void> verify_files(const fs::path& folder, const Manifest& manifest,
                          const std::function<bool()>& should_stop) {
  const std::vector<std::pair<std::string, FileDigest>> files(manifest.files.begin(),
                                                              manifest.files.end());
  std::vector<Result<void>> results(files.size());
  std::atomic<std::size_t> next = 0;
  const auto verify = [&] {
    for (std::size_t i = next++; i < files.size(); i = next++)
      results[i] = verify_file(folder / files[i].first, files[i].second, should_stop);
  };
  const std::size_t verifiers =
      std::min<std::size_t>({std::thread::hardware_concurrency(), files.size(), kVerifiersMax});
  std::vector<std::jthread> others;
  while (others.size() + 1 < verifiers) others.emplace_back(verify);  // a manifest may name none
  verify();
  others.clear();  // joins
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (results[i]) continue;
    auto error = results[i].error();
    if (!should_stop || !should_stop())
      error.message += looks_like(folder / files[i].first, manifest, should_stop);
    return error;
  }
  return {};
}

Result<Manifest> verified_manifest(const fs::path& folder,
                                   const std::function<bool()>& should_stop) {
  const auto text = read_small_file(folder / kManifestFile, kManifestBytesMax);
  if (!text) {
    return Error{
        .code = text.error().code, .message = text.error().message, .subject = kManifestFile};
  }
  auto manifest = manifest_from(*text);
  if (!manifest) return manifest;
  if (const auto verified = verify_files(folder, *manifest, should_stop); !verified)
    return verified.error();
  for (const char* const stem : {kModelStem, kOptimizerStem}) {
    if (!manifest->files.contains(group_file_name(stem, 0, 1)) &&
        !manifest->files.contains(index_name(stem))) {
      return Error{.code = Code::invalid,
                   .message = "is not in the manifest",
                   .subject = group_file_name(stem, 0, 1)};
    }
    if (const auto catalog = TensorCatalog::open(folder, stem); !catalog) return catalog.error();
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

bool is_newer_checkpoint(const std::string& left, const std::string& right) {
  // Longer numbers are greater, equal lengths compare as text: names have leading zeros.
  return left.size() != right.size() ? left.size() > right.size() : left > right;
}

std::int64_t step_of_checkpoint(const std::string& name) {
  if (name.size() <= kNamePrefix.size()) return -1;
  std::int64_t step = -1;
  const auto* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kNamePrefix.size(), end, step);
  return parsed.ec == std::errc{} ? step : -1;
}

std::string describe(const DamagedCheckpoint& damaged) {
  return damaged.name + ": " + damaged.cause;
}

std::vector<std::string> checkpoint_names(const fs::path& out) {
  auto names = names_in(out);
  std::erase_if(names, [](const std::string& name) { return !is_checkpoint_name(name); });
  std::ranges::sort(names, is_newer_checkpoint);
  return names;
}

CheckpointSearch newest_usable_checkpoint(const fs::path& out,
                                          const std::function<bool()>& should_stop) {
  CheckpointSearch search;
  for (const auto& name : checkpoint_names(out)) {
    auto manifest = verified_manifest(out / name, should_stop);
    if (manifest) {
      search.found = FoundCheckpoint{.folder = out / name, .manifest = std::move(*manifest)};
      break;
    }
    if (should_stop && should_stop()) break;
    search.damaged.push_back({.name = name, .cause = describe(manifest.error())});
  }
  return search;
}

Result<std::string> set_aside(const fs::path& out, const std::string& name) {
  const std::string first = std::string(kDamagedPrefix) + name;
  std::error_code failure;
  for (int number = 1; number <= kSameNameMax; ++number) {
    const std::string aside = number == 1 ? first : first + "-" + std::to_string(number);
    if (fs::exists(out / aside, failure)) continue;
    fs::rename(out / name, out / aside, failure);
    if (failure) return folder_error(out / name, "can't be set aside", failure);
    if (const auto synced = sync_folder(out); !synced) return synced.error();
    return aside;
  }
  return Error{
      .code = Code::unavailable,
      .message = "can't be set aside: " + std::to_string(kSameNameMax) + " of its name are already",
      .subject = (out / name).string()};
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

fs::path draft_path(const fs::path& out, std::int64_t step, const std::string& run_id) {
  std::string name = std::string(kDraftPrefix) + checkpoint_name(step);
  if (!run_id.empty()) name += "-" + run_id;
  return out / name;
}

CheckpointDraft::CheckpointDraft(fs::path out, fs::path folder, bool is_owner)
    : out_(std::move(out)), folder_(std::move(folder)), is_owner_(is_owner) {}

CheckpointDraft::CheckpointDraft(CheckpointDraft&& other) noexcept
    : out_(std::move(other.out_)),
      folder_(std::exchange(other.folder_, {})),
      is_owner_(other.is_owner_) {}

CheckpointDraft::~CheckpointDraft() {
  if (folder_.empty() || !is_owner_) return;
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Result<CheckpointDraft> CheckpointDraft::begin(const fs::path& out, std::int64_t step,
                                               const std::string& run_id, bool is_owner) {
  const fs::path folder = draft_path(out, step, run_id);
  std::error_code failure;
  fs::create_directories(folder, failure);  // whichever writer comes first
  if (failure) return folder_error(folder, "can't be created", failure);
  return CheckpointDraft(out, folder, is_owner);
}

Result<fs::path> CheckpointDraft::commit(const Manifest& manifest, const OutClaim& claim) {
  const auto written = write_durably(folder_ / kManifestFile, manifest_text(manifest));
  if (!written) return written.error();
  if (const auto synced = sync_folder(folder_); !synced) return synced.error();
  const fs::path path = out_ / checkpoint_name(manifest.step);
  if (const auto own = check_claim(out_, claim); !own) return own.error();
  std::error_code failure;
  fs::rename(folder_, path, failure);  // never over another one, which is not empty
  if (std::error_code unseen; failure && fs::exists(path, unseen)) {
    // Not a usable one, or the run had gone on from it; but nothing is removed unseen.
    if (const auto own = check_claim(out_, claim); !own) return own.error();
    const auto aside = set_aside(out_, path.filename().string());
    if (!aside) return aside.error();
    fs::rename(folder_, path, failure);
  }
  if (failure) return folder_error(path, "can't get its name", failure);
  folder_.clear();
  if (const auto synced = sync_folder(out_); !synced) return synced.error();
  return path;
}

void sweep_drafts(const fs::path& out) {
  std::error_code ignored;
  for (const auto& name : names_in(out)) {
    if (name.starts_with(kDraftPrefix)) fs::remove_all(out / name, ignored);
  }
}

void remove_checkpoint(const fs::path& out, const std::string& name) {
  std::error_code failure;
  const fs::path removed = out / (std::string(kDraftPrefix) + "removed-" + name);
  fs::remove_all(removed, failure);
  fs::rename(out / name, removed, failure);
  if (!failure) fs::remove_all(removed, failure);
}

}  // namespace tj::trainer
