#include "trainer/workloads/qwen_vggt/conversation_samples.h"

#include <cstdio>

#include "trainer/process/durable_file.h"
#include "trainer/process/lines.h"
#include "trainer/values/counter_random.h"
#include "trainer/values/settings.h"
#include "trainer/workloads/qwen_vggt/conversation_tensors.h"

namespace tj::trainer {
namespace {

constexpr std::uint64_t kTriesMax = 16;  // conversations in place of one that can't be used

/// Another sample in its place, by the sample alone.
std::size_t other(const Sample& sample, std::uint64_t retry, std::size_t count) {
  const auto own = mixed(sample.epoch_key ^ mixed(static_cast<std::uint64_t>(sample.index) + 1));
  return static_cast<std::size_t>(mixed(own + retry) % count);
}

bool is_about_data(const Error& error) {
  return error.code == Code::invalid || error.code == Code::not_found;
}

}  // namespace

std::string BadConversations::count_text() const {
  return std::to_string(count) + " of " + std::to_string(of) + " conversations";
}

std::string BadConversations::text() const {
  char share[32];
  std::snprintf(share, sizeof share, "%g%%", 100 * share_max);
  return count_text() + " can't be used, --bad-data-max allows " + share +
         " (mend or remove them, or allow more)";
}

Result<EncodedConversation> ConversationSamples::encode(std::int64_t number) const {
  auto conversation = set_.read(number);
  if (!conversation) return conversation.error();
  const FilePlace place = [&](const ShownFile& file) { return set_.path_of(number, file); };
  auto encoded = encoder_.encode(std::move(*conversation), place, ChatEnd::complete);
  if (encoded) return encoded;
  auto error = encoded.error();
  if (encoder_.lacks_videos()) return error;  // no conversation's fault
  const auto name = set_.name(number);
  if (error.subject == name) return error;
  const bool is_own = error.subject.empty() || error.subject == "conversation";
  return Error{
      .code = error.code, .message = is_own ? error.message : describe(error), .subject = name};
}

Result<void> ConversationSamples::note_damage(std::int64_t number, const Error& error) const {
  const std::scoped_lock lock(mutex_);
  if (!damaged_.insert(number).second) return {};
  auto bad = options_.bad;
  bad.count += damaged_.size();
  if (bad.are_too_many())
    return Error{.code = Code::invalid,
                 .message = error.message + "; " + bad.text(),
                 .subject = error.subject};
  say_error("left out, another conversation takes its place (" + bad.count_text() +
            "): " + describe(error));
  return {};
}

Result<EncodedConversation> ConversationSamples::read_sample(const Sample& sample) const {
  const auto& numbers = options_.numbers;
  for (std::uint64_t retry = 0;; ++retry) {
    const auto at =
        retry == 0 ? static_cast<std::size_t>(sample.index) : other(sample, retry, numbers.size());
    auto encoded = encode(numbers[at]);
    if (encoded || !is_about_data(encoded.error()) || retry == kTriesMax) return encoded;
    if (encoder_.lacks_videos()) return encoded;
    if (const auto noted = note_damage(numbers[at], encoded.error()); !noted) return noted.error();
  }
}

Result<SampleBatch> ConversationSamples::read(std::span<const Sample> samples) const {
  std::vector<EncodedConversation> encoded;
  std::vector<std::int64_t> numbers;
  for (const auto& sample : samples) {
    auto one = read_sample(sample);
    if (!one) return one.error();
    encoded.push_back(std::move(*one));
    numbers.push_back(sample.index);
  }
  return conversation_batch(encoded, numbers, encoder_.shape().patches);
}

DataMark ConversationSamples::mark() const {
  Sha256 hash;
  const auto add = [&hash](const std::string& text) {
    const auto line = text + "\n";
    hash.update(std::as_bytes(std::span(line)));
  };
  add(std::to_string(set_.digest()));
  add(encoder_.digest());
  add(options_.rule);
  for (const auto number : options_.numbers) add(std::to_string(number));
  return {.unit = "conversations", .count = sample_count(), .digest = std::move(hash).hex()};
}

std::string ConversationSamples::description() const {
  const auto files = set_.files().size();
  return grouped(sample_count()) + " of " + grouped(set_.count()) + " conversations in " +
         grouped(static_cast<std::int64_t>(files)) + (files == 1 ? " file" : " files");
}

}  // namespace tj::trainer
