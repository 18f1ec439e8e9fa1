// Conversations of a user's files as samples, and such as nobody has. The order of samples stays
// the engine's: batches are padded to their own longest sample, and a step's loss is divided by its
// learned tokens, so that no rank's share counts for more; sorting by length would make a resume on
// another number of ranks another training.
#pragma once
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "trainer/data/conversation/conversation_set.h"
#include "trainer/workloads/qwen_vggt/conversation_encoder.h"

namespace tj::trainer {

/// Conversations that can't be used, and how many of all may be such.
struct BadConversations {
  std::size_t count = 0;
  std::size_t of = 0;
  double share_max = 0;

  bool are_too_many() const {
    return static_cast<double>(count) > share_max * static_cast<double>(of);
  }
  /// "1 of 7 conversations"
  std::string count_text() const;
  /// "1 of 7 conversations can't be used, --bad-data-max allows 1% (mend or remove them, or allow
  /// more)"
  std::string text() const;
};

class ConversationSamples final : public SampleSource {
 public:
  struct Options {
    std::vector<std::int64_t> numbers;  // of the set's, which are samples; one at least
    BadConversations bad = {};          // known before
    std::string rule = {};              // all else that samples depend on, in words
  };
  ConversationSamples(ConversationSet set, ConversationEncoder encoder, Options options)
      : set_(std::move(set)), encoder_(std::move(encoder)), options_(std::move(options)) {}

  std::int64_t sample_count() const override {
    return static_cast<std::int64_t>(options_.numbers.size());
  }
  /// ConversationTensor. For a conversation that can't be used another one is taken, the same on
  /// all ranks, and it is named once; with more such than may be, it fails.
  Result<SampleBatch> read(std::span<const Sample> samples) const override;
  DataMark mark() const override;
  std::string description() const override;

 private:
  Result<EncodedConversation> encode(std::int64_t number) const;
  Result<EncodedConversation> read_sample(const Sample& sample) const;
  Result<void> note_damage(std::int64_t number, const Error& error) const;

  ConversationSet set_;
  ConversationEncoder encoder_;
  Options options_;
  mutable std::mutex mutex_;  // guards the one below
  mutable std::set<std::int64_t> damaged_;
};

}  // namespace tj::trainer
