#include "trainer/data/conversation/prepare_conversations.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>

#include "trainer/data/bpe_files.h"
#include "trainer/data/conversation/conversation_set.h"
#include "trainer/data/conversation/conversation_videos.h"
#include "trainer/data/picture/picture.h"
#include "trainer/process/crew.h"
#include "trainer/process/durable_file.h"
#include "trainer/process/unique_fd.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr std::int64_t kAspectMax = 200;  // Qwen2.5-VL's own
constexpr std::size_t kNamedMax = 10;     // broken conversations in the table
constexpr std::size_t kSizesMax = 8;      // of pictures, in the table

Failure save_failed(const Error& error) {
  return {.exit_code = exit_code::kInputOutput,
          .reason = "SaveFailed",
          .message = describe(error) + "; --out names another folder for the index"};
}
Failure save_failed(const fs::path& file, const std::string& what) {
  return save_failed({.code = Code::unavailable, .message = what, .subject = file.string()});
}
std::string text_of(PictureSize size) {
  return std::to_string(size.width) + " x " + std::to_string(size.height);
}

std::optional<Error> flaw_of(const fs::path& file, PictureSize size) {
  const auto [least, most] = std::minmax(size.height, size.width);
  if (most <= kAspectMax * least) return std::nullopt;
  return Error{.code = Code::invalid,
               .message = "is " + text_of(size) +
                          " pixels; one side must be at most 200 times the other: Qwen2.5-VL sees "
                          "no such picture",
               .subject = file.string()};
}

Failure not_read(const Error& error) {
  if (error.subject.starts_with("--data-root") || error.subject.starts_with("--tokenizer"))
    return bad_config(error);
  return error.code == Code::invalid || error.code == Code::not_found
             ? bad_data(error)
             : bad_data(BadDataError(error));
}

/// One file, and what is known of it.
struct Work {
  std::int64_t first = 0;  // conversation of the set
  ConversationIndex index;
  fs::path path;   // of the index
  fs::path notes;  // beside it while it is made
  UniqueFd notes_file = {};
};

/// What is to be looked at.
struct Piece {
  std::size_t work = 0;
  std::int64_t part = 0;
};

class ConversationPreparation {
 public:
  ConversationPreparation(const PrepareConversationsOptions& options,
                          const PrepareConversationsHooks& hooks)
      : options_(options), hooks_(hooks), videos_(hooks.video_plugin) {}

  PrepareConversationsEnd run() {
    auto failure = begin();
    if (!failure) failure = work();
    if (!failure) failure = commit();
    PrepareConversationsEnd end{
        .failure = std::move(failure), .indices = {}, .table = table(), .progress = progress()};
    for (const auto& each : work_) end.indices.push_back(each.path);
    return end;
  }

 private:
  std::optional<Failure> begin() {
    auto set = ConversationSet::open(
        {.paths = options_.inputs, .flag = "--input", .data_root = options_.data_root});
    if (!set) return not_read(set.error());
    set_.emplace(std::move(*set));
    auto pictures = PictureReader::open(hooks_.picture_plugin);
    if (!pictures) return bad_config(pictures.error());
    pictures_.emplace(*pictures);
    if (!options_.tokenizer.empty()) {
      auto vocabulary = read_bpe_vocabulary(options_.tokenizer);
      if (!vocabulary) return bad_config(vocabulary.error());
      vocabulary_.emplace(std::move(*vocabulary));
    }
    std::error_code failure;
    if (!options_.out.empty()) fs::create_directories(options_.out, failure);
    std::int64_t first = 0;
    for (const auto& file : set_->files()) {
      if (auto wrong = add(file, first)) return wrong;
      first += file.count();
    }
    return std::nullopt;
  }

  std::optional<Failure> add(const ConversationFile& file, std::int64_t first) {
    Work work{.first = first,
              .index = {},
              .path = conversation_index_path(file.path(), options_.out),
              .notes = {}};
    work.notes = work.path.parent_path() / ("." + work.path.filename().string() + ".part");
    work.index.key = {.digest = file.digest(),
                      .count = file.count(),
                      .data_root = options_.data_root,
                      .tokenizer = vocabulary_ ? vocabulary_->sha256 : "",
                      .is_decoded = options_.decodes};
    work.notes_file =
        UniqueFd(::open(work.notes.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!work.notes_file.open())
      return save_failed(work.notes, std::string("can't be written: ") + std::strerror(errno));
    if (::flock(work.notes_file.value(), LOCK_EX | LOCK_NB) != 0)
      return bad_config({.code = Code::conflict,
                         .message = "another trainer prepare is at work there",
                         .subject = work.notes.string()});
    const bool goes_on = take_known(work, work.notes);
    take_known(work, work.path);
    if (!goes_on && ::ftruncate(work.notes_file.value(), 0) != 0)
      return save_failed(work.notes, std::string("can't be emptied: ") + std::strerror(errno));
    const auto line =
        goes_on ? "\n" : index_line(work.index.key) + "\n";  // ends a line that was cut
    if (auto wrong = write_note(work, line)) return wrong;
    const auto parts = (file.count() + kConversationsOfPart - 1) / kConversationsOfPart;
    for (std::int64_t part = 0; part < parts; ++part) {
      if (const auto known = work.index.parts.find(part); known != work.index.parts.end()) {
        count(work, known->second);
        continue;
      }
      pieces_.push_back({.work = work_.size(), .part = part});
    }
    kept_ = done_.load();
    work_.push_back(std::move(work));
    return std::nullopt;
  }

  static bool take_known(Work& work, const fs::path& file) {
    auto known = read_conversation_index(file);
    if (!known || known->key != work.index.key) return false;
    work.index.parts.merge(known->parts);
    return true;
  }

  std::optional<Failure> work() {
    begun_ = steady_clock::now();
    Crew crew(hooks_.stop_signal);
    const auto tell = [this] {
      if (hooks_.progress) hooks_.progress(progress());
    };
    const auto look_at_all = [&]() -> std::optional<Failure> {
      std::optional<BpeEncoder> encoder;
      if (vocabulary_) encoder.emplace(*vocabulary_);
      while (!crew.is_stopping()) {
        const std::size_t next = next_++;
        if (next >= pieces_.size()) break;
        if (auto failure = look_at(pieces_[next], encoder)) return failure;
      }
      return std::nullopt;
    };
    if (auto failure = crew.run(options_.threads, look_at_all, hooks_.progress_interval, tell))
      return failure;
    if (done_ == set_->count()) return std::nullopt;
    return Failure{.exit_code = exit_code::kInterrupted,
                   .reason = "Interrupted",
                   .message = "asked to stop by signal " + std::to_string(hooks_.stop_signal()) +
                              "; " + std::to_string(done_) + " of " +
                              std::to_string(set_->count()) +
                              " conversations are done, the same command goes on from there"};
  }

  std::optional<Failure> look_at(const Piece& piece, std::optional<BpeEncoder>& encoder) {
    auto& work = work_[piece.work];
    ConversationPart part{.number = piece.part, .sizes = {}, .broken = {}};
    const auto first = piece.part * kConversationsOfPart;
    const auto end = std::min(work.index.key.count, first + kConversationsOfPart);
    for (auto at = first; at < end; ++at) {
      const auto looked = look_at_one(work.first + at, part, encoder);
      if (looked) continue;
      const auto& error = looked.error();
      if (videos_.lacks_plugin()) return bad_config(error);
      if (error.code != Code::invalid && error.code != Code::not_found) return not_read(error);
      const bool is_own = error.subject == set_->name(work.first + at);
      part.broken[at] = is_own ? error.message : describe(error);
    }
    if (hooks_.stop_signal() != 0) return std::nullopt;  // a video was perhaps not seen to its end
    const std::scoped_lock lock(mutex_);
    if (auto failure = write_note(work, index_line(part) + "\n")) return failure;
    count(work, part);
    work.index.parts.emplace(part.number, std::move(part));
    return std::nullopt;
  }

  Result<void> look_at_one(std::int64_t number, ConversationPart& part,
                           std::optional<BpeEncoder>& encoder) {
    const auto conversation = set_->read(number);
    if (!conversation) return conversation.error();
    std::int64_t tokens = 0, pictures = 0;
    for (const auto& turn : conversation->turns) {
      ++part.turns;
      part.text_bytes += static_cast<std::int64_t>(turn.text.size());
      if (encoder)
        encoder->encode(turn.text,
                        [&tokens](auto ids) { tokens += static_cast<std::int64_t>(ids.size()); });
    }
    part.text_tokens += tokens;
    part.text_tokens_max = std::max(part.text_tokens_max, tokens);
    for (const auto& shown : conversation->shown) {
      const auto file = set_->path_of(number, shown);
      if (!file) return file.error();
      const auto looked =
          shown.is_video ? look_at_video(*file, part) : look_at_picture(*file, part);
      if (!looked) return looked;
      pictures += shown.is_video ? 0 : 1;
    }
    part.pictures += pictures;
    part.pictures_max = std::max(part.pictures_max, pictures);
    return {};
  }

  Result<void> look_at_picture(const fs::path& file, ConversationPart& part) const {
    auto size = pictures_->size(file);
    if (!size) return size.error();
    if (options_.decodes)
      if (const auto picture = pictures_->read(file); !picture) return picture.error();
    if (auto flaw = flaw_of(file, *size)) return *flaw;
    ++part.sizes[text_of(*size)];
    return {};
  }

  /// Its table of frames; what it says is decoded where all is to be.
  Result<void> look_at_video(const fs::path& file, ConversationPart& part) {
    const auto video = videos_.open(file);
    if (!video) return video.error();
    const auto shape = (*video)->shape();
    if (auto flaw = flaw_of(file, {.height = shape.height, .width = shape.width})) return *flaw;
    std::vector<std::byte> rgb(options_.decodes ? shape.frame_bytes() : 0);
    const auto decoded = options_.decodes ? shape.frames : 0;
    for (std::int64_t frame = 0; frame < decoded && hooks_.stop_signal() == 0; ++frame)
      if (auto read = (*video)->read({&frame, 1}, rgb); !read) return read;
    ++part.videos;
    part.video_frames += shape.frames;
    return {};
  }

  /// One write for a line: one that is cut off by the end of the process is not read again.
  static std::optional<Failure> write_note(const Work& work, std::string_view rest) {
    while (!rest.empty()) {
      const auto written = ::write(work.notes_file.value(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0)
        return save_failed(work.notes, std::string("can't be written: ") + std::strerror(errno));
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    return std::nullopt;
  }

  void count(const Work& work, const ConversationPart& part) {
    const auto first = part.number * kConversationsOfPart;
    done_ += std::min(work.index.key.count, first + kConversationsOfPart) - first;
    broken_ += static_cast<std::int64_t>(part.broken.size());
  }

  /// Each index appears whole, and its notes go only then.
  std::optional<Failure> commit() const {
    for (const auto& each : work_) {
      std::string text = index_line(each.index.key) + "\n";
      for (const auto& [number, part] : each.index.parts) text += index_line(part) + "\n";
      const auto draft = each.path.parent_path() / ("." + each.path.filename().string() + ".draft");
      if (const auto written = write_durably(draft, text); !written)
        return save_failed(written.error());
      std::error_code failure;
      fs::rename(draft, each.path, failure);
      if (failure) return save_failed(draft, "can't be renamed: " + failure.message());
      const auto folder = each.path.parent_path();
      if (const auto synced = sync_folder(folder.empty() ? "." : folder); !synced)
        return save_failed(synced.error());
      fs::remove(each.notes, failure);
    }
    return std::nullopt;
  }

  PrepareConversationsProgress progress() const {
    const std::chrono::duration<double> taken = steady_clock::now() - begun_;
    return {.done = done_,
            .kept = kept_,
            .all = set_ ? set_->count() : 0,
            .broken = broken_,
            .seconds = taken.count()};
  }

  std::string table() const;

  const PrepareConversationsOptions& options_;
  const PrepareConversationsHooks& hooks_;
  std::optional<ConversationSet> set_;
  std::optional<PictureReader> pictures_;
  ConversationVideos videos_;
  std::optional<BpeVocabulary> vocabulary_;
  std::vector<Work> work_;
  std::vector<Piece> pieces_;
  std::mutex mutex_;  // guards the notes and the parts in work_
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::int64_t> done_ = 0;
  std::atomic<std::int64_t> broken_ = 0;
  std::int64_t kept_ = 0;
  steady_clock::time_point begun_ = steady_clock::now();
};

/// The most frequent first.
std::string sizes_text(const std::map<std::string, std::int64_t>& sizes) {
  std::vector<std::pair<std::string, std::int64_t>> sorted(sizes.begin(), sizes.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& each) { return each.second; });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), kSizesMax); ++i)
    text += (i == 0 ? "" : ", ") + sorted[i].first + ": " + grouped(sorted[i].second);
  if (sorted.size() > kSizesMax)
    text += ", and " + std::to_string(sorted.size() - kSizesMax) + " more";
  return text;
}

std::string ConversationPreparation::table() const {
  ConversationPart all;
  std::string named;
  std::size_t named_count = 0;
  for (std::size_t i = 0; i < work_.size(); ++i) {
    for (const auto& [number, part] : work_[i].index.parts) {
      all.turns += part.turns;
      all.pictures += part.pictures;
      all.videos += part.videos;
      all.video_frames += part.video_frames;
      all.text_bytes += part.text_bytes;
      all.text_tokens += part.text_tokens;
      all.text_tokens_max = std::max(all.text_tokens_max, part.text_tokens_max);
      all.pictures_max = std::max(all.pictures_max, part.pictures_max);
      for (const auto& [size, count] : part.sizes) all.sizes[size] += count;
      for (const auto& [at, why] : part.broken)
        if (++named_count <= kNamedMax)
          named += "broken         " + set_->files()[i].name(at) + ": " + why + "\n";
    }
  }
  if (named_count > kNamedMax)
    named += "broken         and " + std::to_string(named_count - kNamedMax) + " more\n";
  std::string text;
  const auto row = [&text](const char* name, const std::string& value) {
    char line[32];
    std::snprintf(line, sizeof line, "%-13s  ", name);
    text += line + value + "\n";
  };
  row("conversations", grouped(progress().done) + ", " + grouped(all.turns) + " turns");
  row("pictures",
      grouped(all.pictures) + ", at most " + grouped(all.pictures_max) + " in a conversation");
  if (all.pictures > 0) row("sizes", sizes_text(all.sizes));
  if (all.videos > 0)
    row("videos", grouped(all.videos) + ", " + grouped(all.video_frames) + " frames");
  if (vocabulary_)
    row("text", grouped(all.text_tokens) + " tokens, at most " + grouped(all.text_tokens_max) +
                    " in a conversation");
  else
    row("text", grouped(all.text_bytes) + " bytes");
  if (named_count > 0)
    row("broken", grouped(static_cast<std::int64_t>(named_count)) + " of " +
                      grouped(set_->count()) + " conversations");
  return text + named;
}

}  // namespace

std::string progress_line(const PrepareConversationsProgress& progress) {
  const auto all = static_cast<double>(std::max<std::int64_t>(1, progress.all));
  const auto done = static_cast<double>(progress.done);
  const auto fresh = static_cast<double>(progress.done - progress.kept);
  char eta[32] = "?";
  if (fresh > 0) std::snprintf(eta, sizeof eta, "%.0f s", (all - done) / fresh * progress.seconds);
  char line[160];
  std::snprintf(line, sizeof line, "%.0f %% | %lld/%lld conversations | %lld broken | ETA %s",
                std::floor(100 * done / all), static_cast<long long>(progress.done),
                static_cast<long long>(progress.all), static_cast<long long>(progress.broken), eta);
  return line;
}

PrepareConversationsEnd prepare_conversations(const PrepareConversationsOptions& options,
                                              const PrepareConversationsHooks& hooks) {
  return ConversationPreparation(options, hooks).run();
}

}  // namespace tj::trainer
