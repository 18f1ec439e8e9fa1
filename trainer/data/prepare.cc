#include "trainer/data/prepare.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>

#include "trainer/data/slice_documents.h"
#include "trainer/data/token_file_builder.h"
#include "trainer/data/tokenizer_json.h"
#include "trainer/process/crew.h"
#include "trainer/process/durable_file.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using std::chrono::steady_clock;

Failure save_failed(const Error& error) {
  return {.exit_code = exit_code::kInputOutput, .reason = "SaveFailed", .message = describe(error)};
}
Failure wrong(const std::string& option, const std::string& what) {
  return bad_config({.code = Code::invalid, .message = what, .subject = option});
}

std::string token_file_name(const char* split, std::size_t part) {
  char name[40];
  std::snprintf(name, sizeof name, "%s-%06zu.tok", split, part);
  return name;
}

/// 0.3% is 0.003 to the last bit: its digits are moved, nothing is divided.
std::optional<double> share_from(std::string text) {
  if (text.ends_with('%')) text.replace(text.size() - 1, 1, "e-2");
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = failure == std::errc{} && end == text.data() + text.size();
  return is_number && value >= 0 && value < 1 ? std::optional(value) : std::nullopt;
}

Result<FileDigest> write_and_rename(const fs::path& folder, const std::string& name,
                                    const std::string& text) {
  const fs::path draft = folder / (name + ".draft");
  const auto written = write_durably(draft, text);
  if (!written) return written.error();
  std::error_code failure;
  fs::rename(draft, folder / name, failure);
  if (!failure) {
    if (const auto synced = sync_folder(folder); !synced) return synced.error();
    return *written;
  }
  return Error{.code = Code::unavailable,
               .message = "can't be renamed: " + failure.message(),
               .subject = draft.string()};
}

/// What a finished part left behind.
struct PartEntries {
  TokenFileEntry train;
  std::optional<TokenFileEntry> val;
};

class Preparation {
 public:
  Preparation(const PrepareOptions& options, const PrepareHooks& hooks)
      : options_(options), hooks_(hooks), folder_(options.output), reader_(options.field) {}

  PrepareEnd run() {
    auto failure = begin();
    if (!failure && !is_done_) failure = keep_tokenizer();
    if (!failure && !is_done_) failure = work();
    if (!failure && !is_done_) failure = commit();
    std::int64_t rows = 0;
    for (const auto& file : inputs_) rows += file.rows;
    return {
        .failure = failure, .manifest = std::move(manifest_), .rows = rows, .progress = progress()};
  }

 private:
  std::optional<Failure> begin() {
    if (auto failure = choose_tokenizer()) return failure;
    const auto share = share_from(options_.val);
    if (!share) {
      return wrong("--val", "is \"" + options_.val +
                                "\"; it must be a share such as 1% or 0.01, from 0 to less than 1");
    }
    val_share_ = *share;
    auto inputs = find_inputs(options_.inputs, options_.format);
    if (!inputs) return bad_data(inputs.error());
    inputs_ = std::move(*inputs);
    if (auto failure = reader_.measure(inputs_, options_.parquet_plugin)) return failure;
    parts_ = plan_parts(inputs_, options_.part_bytes);
    if (parts_.size() > kPartsMax) {
      return wrong("--input", "makes " + std::to_string(parts_.size()) + " token files; at most " +
                                  std::to_string(kPartsMax) +
                                  " can be open at once: prepare it in "
                                  "several folders");
    }
    entries_.resize(parts_.size());
    for (const auto& file : inputs_) bytes_ += file.bytes;
    manifest_.made_from = identity();
    return open_output();
  }

  std::optional<Failure> choose_tokenizer() {
    if (options_.tokenizer == "byte") {
      tokenizer_ = byte_tokenizer();
      if (options_.vocabulary.empty()) return std::nullopt;
      return wrong("--vocabulary", "is given, but the tokenizer byte has none");
    }
    if (options_.tokenizer != "bpe" && options_.tokenizer != "gpt2-bpe") {
      return wrong("--tokenizer",
                   "is \"" + options_.tokenizer + "\"; it must be byte, bpe or gpt2-bpe");
    }
    if (options_.vocabulary.empty()) {
      return wrong("--vocabulary", "is missing; " + options_.tokenizer +
                                       " needs a tokenizer.json, or a folder with vocab.json and "
                                       "merges.txt");
    }
    auto tokenizer = gpt2_tokenizer(options_.vocabulary, options_.tokenizer);
    if (!tokenizer) return bad_config(tokenizer.error());
    tokenizer_ = std::move(*tokenizer);
    return std::nullopt;
  }

  PrepareIdentity identity() const {
    const auto format = inputs_.front().format;
    const bool has_field = format == TextFormat::jsonl || format == TextFormat::parquet;
    return {.tokenizer = tokenizer_.name,
            .tokenizer_sha256 = tokenizer_.sha256,
            .vocabulary = tokenizer_.vocabulary,
            .document_end = tokenizer_.document_end,
            .format = to_string(format),
            .field = has_field ? options_.field : "",
            .val_fraction = number_text(val_share_),
            .part_bytes = options_.part_bytes,
            .input_files = static_cast<std::int64_t>(inputs_.size()),
            .input_bytes = bytes_,
            .input_sha256 = inputs_sha256(inputs_)};
  }

  std::optional<Failure> open_output() {
    std::error_code failure;
    fs::create_directories(folder_, failure);
    if (failure) {
      return save_failed({.code = Code::unavailable,
                          .message = "can't be created: " + failure.message(),
                          .subject = "--output " + folder_.string()});
    }
    lock_ = UniqueFd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock_.open()) return save_failed(read_error(folder_, errno));
    if (::flock(lock_.value(), LOCK_EX | LOCK_NB) != 0)
      return wrong("--output " + folder_.string(), "another trainer prepare is at work there");
    if (fs::exists(folder_ / kTokenManifestFile)) return open_finished();
    if (fs::exists(folder_ / kUnfinishedFile)) return open_unfinished();
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == ".draft") continue;
      return wrong("--output " + folder_.string(),
                   "holds " + entry.path().filename().string() + "; it must be an empty folder");
    }
    const auto begun =
        write_and_rename(folder_, kUnfinishedFile, identity_text(manifest_.made_from));
    return begun ? std::nullopt : std::optional(save_failed(begun.error()));
  }

  /// The end of a run that was killed after its last rename, or a second run of the same command.
  std::optional<Failure> open_finished() {
    const auto path = folder_ / kTokenManifestFile;
    const auto text = read_small_file(path, kTokenManifestBytesMax);
    if (!text) return save_failed(text.error());
    const auto finished = token_manifest_from(*text);
    if (!finished) return wrong(path.string(), finished.error().message);
    if (auto failure = check_same(finished->made_from, "already holds tokens")) return failure;
    manifest_ = *finished;
    is_done_ = true;
    bytes_done_ = bytes_kept_ = bytes_;
    parts_done_ = parts_.size();
    return remove_mark();
  }

  std::optional<Failure> open_unfinished() {
    const auto path = folder_ / kUnfinishedFile;
    const auto text = read_small_file(path, kTokenManifestBytesMax);
    if (!text) return save_failed(text.error());
    const auto before = identity_from(*text);
    if (!before) return wrong(path.string(), before.error().message);
    return check_same(*before, "holds a part of the work");
  }

  std::optional<Failure> check_same(const PrepareIdentity& before, const std::string& what) const {
    const std::string differs = difference(manifest_.made_from, before);
    if (differs.empty()) return std::nullopt;
    return wrong("--output " + folder_.string(), what + " for another input or other options: " +
                                                     differs + "; give another folder");
  }

  std::optional<Failure> remove_mark() const {
    std::error_code ignored;
    fs::remove(folder_ / kUnfinishedFile, ignored);
    const auto synced = sync_folder(folder_);
    return synced ? std::nullopt : std::optional(save_failed(synced.error()));
  }

  /// Beside the tokens, so that they can become text again wherever the folder goes.
  std::optional<Failure> keep_tokenizer() {
    if (!tokenizer_.bpe) return std::nullopt;
    const std::string& text = tokenizer_.bpe->tokenizer_json;
    const auto written = write_and_rename(folder_, kTokenizerJsonFile, text);
    if (!written) return save_failed(written.error());
    manifest_.tokenizer_file = {
        .file = kTokenizerJsonFile, .bytes = written->bytes, .sha256 = written->sha256};
    return std::nullopt;
  }

  std::optional<Failure> work() {
    begun_ = steady_clock::now();
    const int workers =
        std::min(options_.workers, static_cast<int>(std::min<std::size_t>(parts_.size(), 1024)));
    const auto tell = [this] {
      if (hooks_.progress) hooks_.progress(progress());
    };
    if (auto failure = crew_.run(
            workers, [this] { return do_parts(); }, hooks_.progress_interval, tell))
      return failure;
    if (parts_done_ == parts_.size()) return std::nullopt;
    return Failure{.exit_code = exit_code::kInterrupted,
                   .reason = "Interrupted",
                   .message = "asked to stop by signal " + std::to_string(hooks_.stop_signal()) +
                              "; " + std::to_string(parts_done_) + " of " +
                              std::to_string(parts_.size()) +
                              " parts are done, the same command goes on from there"};
  }

  std::optional<Failure> do_parts() {
    Encoder encoder(tokenizer_);
    while (!crew_.is_stopping()) {
      const std::size_t part = next_part_++;
      if (part >= parts_.size()) break;
      if (auto failure = do_part(part, encoder)) return failure;
    }
    return std::nullopt;
  }

  std::optional<Failure> do_part(std::size_t part, Encoder& encoder) {
    std::int64_t nominal_bytes = 0;
    for (const auto& slice : parts_[part]) nominal_bytes += slice.end - slice.begin;
    if (take_finished(part)) {
      bytes_kept_ += nominal_bytes;
    } else {
      TokenFileBuilder train(tokenizer_);
      TokenFileBuilder val(tokenizer_);
      for (const auto& slice : parts_[part]) {
        if (const auto done = encode_slice(slice, encoder, train, val); !done)
          return bad_data(done.error());
        if (crew_.is_stopping()) return std::nullopt;
      }
      if (const auto written = write_part(part, train, val); !written)
        return save_failed(written.error());
    }
    bytes_done_ += nominal_bytes;
    ++parts_done_;
    return std::nullopt;
  }

  bool take_finished(std::size_t part) {
    auto& entries = entries_[part];
    if (has_val()) {
      const auto val = finished_token_file(folder_, token_file_name("val", part), tokenizer_);
      if (!val) return false;
      entries.val = *val;
    }
    const auto train = finished_token_file(folder_, token_file_name("train", part), tokenizer_);
    if (train) entries.train = *train;
    return train.ok();
  }

  Result<void> encode_slice(const Slice& slice, Encoder& encoder, TokenFileBuilder& train,
                            TokenFileBuilder& val) {
    const InputFile& input = inputs_[slice.file];
    const auto held_out = [&](std::int64_t place) {
      return is_held_out(input.name, place, val_share_);
    };
    SliceCall call{
        .file = input, .slice = slice, .is_stopping = [this] { return crew_.is_stopping(); }};
    if (has_val()) call.is_held_out = held_out;
    return reader_.read(call, [&](const Document& document) {
      auto& builder = held_out(document.offset) ? val : train;
      encoder.encode(document.text, [&](auto ids) { builder.append(ids); });
      if (document.ends) builder.end_document();
      return !crew_.is_stopping();
    });
  }

  Result<void> write_part(std::size_t part, const TokenFileBuilder& train,
                          const TokenFileBuilder& val) {
    if (has_val()) {
      const auto written = val.write(folder_, token_file_name("val", part));
      if (!written) return written.error();
      entries_[part].val = *written;
    }
    const auto written = train.write(folder_, token_file_name("train", part));
    if (!written) return written.error();
    entries_[part].train = *written;
    return sync_folder(folder_);
  }

  std::optional<Failure> commit() {
    for (auto& entries : entries_) {
      manifest_.train.push_back(std::move(entries.train));
      if (entries.val) manifest_.val.push_back(std::move(*entries.val));
    }
    for (const auto& entry : fs::directory_iterator(folder_)) {
      std::error_code ignored;  // of a killed run; it does no harm
      if (entry.path().extension() == ".draft") fs::remove(entry.path(), ignored);
    }
    const auto committed =
        write_and_rename(folder_, kTokenManifestFile, token_manifest_text(manifest_));
    if (!committed) return save_failed(committed.error());
    return remove_mark();
  }

  bool has_val() const { return val_share_ > 0; }

  PrepareProgress progress() const {
    const std::chrono::duration<double> taken = steady_clock::now() - begun_;
    return {.bytes_done = bytes_done_,
            .bytes_kept = bytes_kept_,
            .bytes = bytes_,
            .parts_done = parts_done_,
            .parts = parts_.size(),
            .workers = options_.workers,
            .seconds = taken.count()};
  }

  const PrepareOptions& options_;
  const PrepareHooks& hooks_;
  Crew crew_{hooks_.stop_signal};
  const fs::path folder_;
  Tokenizer tokenizer_;
  double val_share_ = 0;
  std::vector<InputFile> inputs_;
  SliceReader reader_;
  std::int64_t bytes_ = 0;
  std::vector<Part> parts_;
  std::vector<PartEntries> entries_;  // each by the one worker that has its part
  TokenManifest manifest_;
  bool is_done_ = false;
  UniqueFd lock_;  // on the folder; the kernel gives it back however this process ends
  steady_clock::time_point begun_ = steady_clock::now();
  std::atomic<std::size_t> next_part_ = 0;
  std::atomic<std::size_t> parts_done_ = 0;
  std::atomic<std::int64_t> bytes_done_ = 0;
  std::atomic<std::int64_t> bytes_kept_ = 0;
};

}  // namespace

std::string progress_line(const PrepareProgress& progress) {
  constexpr double kMegabyte = 1e6;
  const auto done = static_cast<double>(progress.bytes_done);
  const auto all = static_cast<double>(std::max<std::int64_t>(1, progress.bytes));
  const auto fresh = static_cast<double>(progress.bytes_done - progress.bytes_kept);
  const double speed = progress.seconds > 0 ? fresh / progress.seconds : 0;
  char eta[32] = "?";
  if (speed > 0) std::snprintf(eta, sizeof eta, "%.0f s", (all - done) / speed);
  char line[160];
  std::snprintf(line, sizeof line, "%.0f %% | %.1f of %.1f MB | %zu/%zu parts | %.1f MB/s | ETA %s",
                100 * done / all, done / kMegabyte, all / kMegabyte, progress.parts_done,
                progress.parts, speed / kMegabyte, eta);
  return line;
}

PrepareEnd prepare(const PrepareOptions& options, const PrepareHooks& hooks) {
  TJ_CHECK(options.workers >= 1 && options.workers <= kPrepareWorkersMax, "so many workers");
  return Preparation(options, hooks).run();
}

}  // namespace tj::trainer
