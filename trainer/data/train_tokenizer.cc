#include "trainer/data/train_tokenizer.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "trainer/data/bpe_training.h"
#include "trainer/data/prepare.h"
#include "trainer/data/prepare_plan.h"
#include "trainer/data/slice_documents.h"
#include "trainer/data/spelled_bpe.h"
#include "trainer/data/tokenizer_json.h"
#include "trainer/process/crew.h"
#include "trainer/process/durable_file.h"
#include "trainer/process/output_draft.h"
#include "trainer/values/settings.h"

namespace tj::trainer {
namespace {
namespace fs = std::filesystem;
using std::chrono::steady_clock;

Failure save_failed(const Error& error) {
  if (error.code == Code::conflict) return bad_config(error);
  return {.exit_code = exit_code::kInputOutput, .reason = "SaveFailed", .message = describe(error)};
}

double seconds_since(steady_clock::time_point begun) {
  return std::chrono::duration<double>(steady_clock::now() - begun).count();
}

/// The ids that Hugging Face's trainer gives: the special token, then the bytes in the order of the
/// characters that stand for them.
BpeTraining first_tokens(const TrainTokenizerOptions& options) {
  const auto spellings = byte_spellings();
  std::array<std::uint8_t, 256> order;
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint8_t>(i);
  std::ranges::sort(order, {}, [&](std::uint8_t byte) { return spellings[byte]; });
  BpeTraining training;
  training.first_tokens.emplace_back(kEndOfText);
  for (const std::uint8_t byte : order) {
    training.byte_ids[byte] = static_cast<std::uint32_t>(training.first_tokens.size());
    training.first_tokens.emplace_back(1, static_cast<char>(byte));
  }
  training.vocabulary_size = static_cast<std::size_t>(options.vocabulary_size);
  training.pair_count_min = std::max<std::int64_t>(1, options.min_frequency);
  return training;
}

SpelledBpe spelled_from(const LearnedBpe& learned) {
  const auto spellings = byte_spellings();
  const auto spelled_token = [&](std::uint32_t id) {
    std::string text;
    for (const char byte : learned.tokens[id]) text += spellings[static_cast<std::uint8_t>(byte)];
    return text;
  };
  SpelledBpe spelled;
  spelled.document_end = kEndOfText;
  for (std::uint32_t id = 0; id < learned.tokens.size(); ++id)
    spelled.ids.emplace(spelled_token(id), id);
  for (const auto& [left, right] : learned.merges)
    spelled.merges.push_back({.left = spelled_token(left), .right = spelled_token(right)});
  return spelled;
}

class TokenizerTraining {
 public:
  TokenizerTraining(const TrainTokenizerOptions& options, const TrainTokenizerHooks& hooks)
      : options_(options), hooks_(hooks), reader_(options.field), counts_(options.limits) {}

  TrainTokenizerEnd run() {
    TrainTokenizerEnd end;
    end.failure = work(end);
    end.progress = progress();
    return end;
  }

 private:
  std::optional<Failure> work(TrainTokenizerEnd& end) {
    auto draft = begin_output();
    if (!draft) return save_failed(draft.error());
    auto inputs = find_inputs(options_.inputs, options_.format);
    if (!inputs) return bad_data(inputs.error());
    inputs_ = std::move(*inputs);
    if (auto failure = reader_.measure(inputs_)) return failure;
    parts_ = plan_parts(inputs_, options_.part_bytes);
    for (const auto& file : inputs_) bytes_ += file.bytes;
    if (auto failure = count()) return failure;
    const LearnedBpe learned = merge();
    if (hooks_.stop_signal() != 0) return interrupted();
    end.merges = static_cast<std::int64_t>(learned.merges.size());
    if (learned.text_tokens > 0)
      end.bytes_per_token = counted_bytes_ / static_cast<double>(learned.text_tokens);
    return write(spelled_from(learned), *draft);
  }

  /// Before the work that would be in vain.
  Result<OutputDraft> begin_output() const {
    auto draft = OutputDraft::begin(options_.output);
    if (!draft) {
      Error error = draft.error();
      error.subject = "--output " + error.subject;
      return error;
    }
    const fs::path folder = draft->out().has_parent_path() ? draft->out().parent_path() : ".";
    std::error_code unreadable;
    if (fs::is_directory(folder, unreadable)) return draft;
    return Error{.code = Code::conflict,
                 .message = "can't be written: " + folder.string() + " is no folder",
                 .subject = "--output " + draft->out().string()};
  }

  std::optional<Failure> count() {
    const int workers = static_cast<int>(
        std::min<std::size_t>(static_cast<std::size_t>(options_.workers), parts_.size()));
    const auto tell = [this] {
      if (hooks_.progress) hooks_.progress(progress());
    };
    if (auto failure = crew_.run(
            workers, [this] { return count_parts(); }, hooks_.progress_interval, tell))
      return failure;
    if (hooks_.stop_signal() != 0) return interrupted();
    return std::nullopt;
  }

  std::optional<Failure> count_parts() {
    WordCounter counter(counts_);
    while (!crew_.is_stopping()) {
      const std::size_t part = next_part_++;
      if (part >= parts_.size()) break;
      for (const auto& slice : parts_[part]) {
        if (const auto done = count_slice(slice, counter); !done) return bad_data(done.error());
        if (crew_.is_stopping()) break;
        bytes_done_ += slice.end - slice.begin;
      }
    }
    counter.flush();
    return std::nullopt;
  }

  Result<void> count_slice(const Slice& slice, WordCounter& counter) {
    return reader_.read({.file = inputs_[slice.file],
                         .slice = slice,
                         .is_stopping = [this] { return crew_.is_stopping(); }},
                        [&](const Document& document) {
                          counter.count(document.text);
                          return !crew_.is_stopping();
                        });
  }

  Failure interrupted() const {
    return {.exit_code = exit_code::kInterrupted,
            .reason = "Interrupted",
            .message = "asked to stop by signal " + std::to_string(hooks_.stop_signal()) +
                       "; nothing is written, the same command begins again"};
  }

  LearnedBpe merge() {
    BpeTraining training = first_tokens(options_);
    phase_begun_ = steady_clock::now();
    auto shown = phase_begun_;
    training.should_stop = [&](std::size_t tokens) {
      tokens_ = static_cast<std::int64_t>(tokens);
      if (steady_clock::now() - shown >= hooks_.progress_interval) {
        shown = steady_clock::now();
        if (hooks_.progress) hooks_.progress(progress());
      }
      return hooks_.stop_signal() != 0;
    };
    const auto words = counts_.all();
    for (const auto& word : words)
      counted_bytes_ += static_cast<double>(word.text.size()) * static_cast<double>(word.count);
    LearnedBpe learned = learn_bpe(words, training);
    tokens_ = static_cast<std::int64_t>(learned.tokens.size());
    return learned;
  }

  static std::optional<Failure> write(const SpelledBpe& spelled, OutputDraft& draft) {
    const auto written = write_durably(draft.path(), tokenizer_json_text(spelled));
    if (!written) return save_failed(written.error());
    const auto committed = draft.commit();
    return committed ? std::nullopt : std::optional(save_failed(committed.error()));
  }

  TrainTokenizerProgress progress() const {
    return {.is_merging = tokens_ > 0,
            .bytes_done = bytes_done_,
            .bytes = bytes_,
            .words = counts_.words(),
            .halvings = counts_.halvings(),
            .tokens = tokens_,
            .tokens_wanted = options_.vocabulary_size,
            .seconds = seconds_since(begun_),
            .phase_seconds = seconds_since(phase_begun_)};
  }

  const TrainTokenizerOptions& options_;
  const TrainTokenizerHooks& hooks_;
  Crew crew_{hooks_.stop_signal};
  std::vector<InputFile> inputs_;
  SliceReader reader_;
  std::int64_t bytes_ = 0;
  std::vector<Part> parts_;
  WordCounts counts_;
  double counted_bytes_ = 0;
  std::int64_t tokens_ = 0;  // 0: still counting
  steady_clock::time_point begun_ = steady_clock::now();
  steady_clock::time_point phase_begun_ = begun_;
  std::atomic<std::size_t> next_part_ = 0;
  std::atomic<std::int64_t> bytes_done_ = 0;
};

}  // namespace

std::string progress_line(const TrainTokenizerProgress& progress) {
  constexpr double kMegabyte = 1e6;
  const auto done =
      static_cast<double>(progress.is_merging ? progress.tokens : progress.bytes_done);
  const auto all = std::max(
      1.0, static_cast<double>(progress.is_merging ? progress.tokens_wanted : progress.bytes));
  const double speed = progress.phase_seconds > 0 ? done / progress.phase_seconds : 0;
  char eta[32] = "?";
  if (speed > 0) std::snprintf(eta, sizeof eta, "%.0f s", (all - done) / speed);
  char line[200];
  if (progress.is_merging) {
    std::snprintf(line, sizeof line, "merging %.0f %% | %s of %s tokens | ETA %s", 100 * done / all,
                  grouped(progress.tokens).c_str(), grouped(progress.tokens_wanted).c_str(), eta);
  } else {
    std::snprintf(line, sizeof line,
                  "counting %.0f %% | %.1f of %.1f MB | %s words | %.1f MB/s | ETA %s",
                  100 * done / all, done / kMegabyte, all / kMegabyte,
                  grouped(progress.words).c_str(), speed / kMegabyte, eta);
  }
  return line;
}

TrainTokenizerEnd train_tokenizer(const TrainTokenizerOptions& options,
                                  const TrainTokenizerHooks& hooks) {
  TJ_CHECK(options.workers >= 1 && options.workers <= kPrepareWorkersMax, "so many workers");
  TJ_CHECK(options.vocabulary_size >= kTrainedVocabularyMin &&
               options.vocabulary_size <= kTrainedVocabularyMax,
           "a vocabulary of such a size");
  return TokenizerTraining(options, hooks).run();
}

}  // namespace tj::trainer
