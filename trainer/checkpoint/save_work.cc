#include "trainer/checkpoint/save_work.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "contract/utf8.h"
#include "trainer/values/json_integer.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using std::chrono::steady_clock;
constexpr std::size_t kPieceBytes = 1 << 20;
constexpr std::int64_t kNoteBytesMax = 1 << 20;

std::string note_name(int writer) { return "writer-" + std::to_string(writer) + ".json"; }

/// Under another name first: a note is read whole or not at all.
Result<void> write_note(const fs::path& folder, int writer, const std::string& text) {
  const fs::path temporary = folder / (note_name(writer) + ".part");
  if (const auto written = write_durably(temporary, text); !written) return written.error();
  std::error_code failure;
  fs::rename(temporary, folder / note_name(writer), failure);
  if (!failure) return {};
  return Error{.code = Code::unavailable,
               .message = "can't get its name: " + failure.message(),
               .subject = temporary.string()};
}

std::uintmax_t bytes_in(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  std::error_code failure;
  fs::directory_iterator files(folder, failure);
  for (; !failure && files != fs::directory_iterator(); files.increment(failure)) {
    std::error_code gone;  // a note under its first name
    const auto size = files->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

fs::path draft_folder(const SaveOrder& order) {
  return draft_path(order.out, order.manifest.step, order.run_id);
}

}  // namespace

SaveWork::SaveWork(SaveOrder order, std::vector<FileContent> files,
                   std::map<std::string, std::string> indices)
    : order_(std::move(order)), files_(std::move(files)), indices_(std::move(indices)) {}

Result<SaveWork::State> SaveWork::advance() {
  if (!draft_) {
    auto draft = CheckpointDraft::begin(order_.out, order_.manifest.step, order_.run_id,
                                        /*is_owner=*/order_.writer == 0);
    if (!draft) return draft.error();
    draft_.emplace(std::move(*draft));
    return State::busy;
  }
  if (file_ < files_.size()) return write_some();
  if (!std::exchange(has_written_, true)) return leave_note();
  if (order_.writer != 0) return State::own_done;
  return gather();
}

Result<SaveWork::State> SaveWork::write_some() {
  const FileContent& file = files_[file_];
  if (!open_) {
    auto created = DurableFile::create(draft_->folder() / file.name);
    if (!created) return created.error();
    open_.emplace(std::move(*created));
    if (const auto written = open_->write(std::as_bytes(std::span(file.head))); !written)
      return written.error();
  }
  if (part_ < file.parts.size()) {
    const auto rest = file.parts[part_].subspan(offset_);
    const auto piece = rest.first(std::min(kPieceBytes, rest.size()));
    if (const auto written = open_->write(piece); !written) return written.error();
    offset_ += piece.size();
    if (piece.size() == rest.size()) {
      ++part_;
      offset_ = 0;
    }
    return State::busy;
  }
  auto digest = open_->finish();
  if (!digest) return digest.error();
  digests_[file.name] = *digest;
  open_.reset();
  part_ = 0;
  ++file_;
  return State::busy;
}

Result<SaveWork::State> SaveWork::leave_note() {
  if (order_.writer == 0) return State::own_done;
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [name, digest] : digests_)
    files[name] = {{"bytes", digest.bytes}, {"sha256", digest.sha256}};
  const nlohmann::json note = {{"files", files}};
  if (const auto written = write_note(draft_->folder(), order_.writer, note.dump()); !written)
    return written.error();
  return State::own_done;
}

/// True when the note was there.
Result<bool> SaveWork::read_note(int writer) {
  const fs::path path = draft_->folder() / note_name(writer);
  std::error_code failure;
  if (!fs::exists(path, failure)) return false;
  const auto text = read_small_file(path, kNoteBytesMax);
  if (!text) return text.error();
  const std::string who = "rank " + std::to_string(writer);
  const auto note = nlohmann::json::parse(*text, nullptr, false);
  try {
    if (note.contains("error")) {
      return Error{.code = Code::unavailable,
                   .message = note.at("error").get<std::string>(),
                   .subject = who};
    }
    for (const auto& [name, digest] : note.at("files").items()) {
      digests_[name] = {.bytes = integer_of(digest.at("bytes")),
                        .sha256 = digest.at("sha256").get<std::string>()};
      const auto bytes = fs::file_size(draft_->folder() / name, failure);
      if (!failure && static_cast<std::int64_t>(bytes) == digests_[name].bytes) continue;
      return Error{.code = Code::unavailable,
                   .message = "wrote " + name + ", but rank 0 does not see it whole",
                   .subject = who};
    }
  } catch (const nlohmann::json::exception& bad) {
    return Error{.code = Code::invalid, .message = bad.what(), .subject = path.string()};
  }
  return true;
}

/// The time begins anew as long as the others write.
bool SaveWork::is_gather_over() {
  if (!order_.others_max) return false;
  const auto now = steady_clock::now();
  if (gather_end_ && now < *gather_end_) return false;
  const auto bytes = bytes_in(draft_->folder());
  const bool is_over = gather_end_ && bytes == gathered_bytes_;
  gathered_bytes_ = bytes;
  gather_end_ = now + *order_.others_max;
  return is_over;
}

Result<SaveWork::State> SaveWork::gather() {
  while (next_note_ < order_.writers) {
    const auto found = read_note(next_note_);
    if (!found) return found.error();
    if (*found) {
      ++next_note_;
      continue;
    }
    if (!is_gather_over()) return State::waiting;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*order_.others_max);
    return Error{.code = Code::timeout,
                 .message = "has written nothing of its part for " +
                            std::to_string(seconds.count()) + " s (limit save)",
                 .subject = "rank " + std::to_string(next_note_)};
  }
  return commit();
}

Result<SaveWork::State> SaveWork::commit() {
  std::error_code ignored;
  for (int writer = 1; writer < order_.writers; ++writer)
    fs::remove(draft_->folder() / note_name(writer), ignored);
  auto texts = indices_;
  texts.insert(order_.more_files.begin(), order_.more_files.end());
  texts[kConfigFile] = order_.config_json;
  for (const auto& [name, text] : texts) {
    const auto written = write_durably(draft_->folder() / name, text);
    if (!written) return written.error();
    digests_[name] = *written;
  }
  Manifest manifest = order_.manifest;
  manifest.files = digests_;
  auto path = draft_->commit(manifest, order_.claim);
  if (!path) return path.error();
  path_ = *path;
  prune_checkpoints(order_.out, order_.retention, order_.own, order_.claim);
  return State::committed;
}

void leave_failure_note(const SaveOrder& order, const Error& error) noexcept {
  try {
    const nlohmann::json note = {{"error", with_invalid_utf8_replaced(describe(error))}};
    (void)write_note(draft_folder(order), order.writer, note.dump());
  } catch (const std::exception&) {
    return;  // rank 0 hears of it with the next step as well
  }
}

}  // namespace tj::trainer
