#include "cli/command_words.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

namespace tj {
namespace {

constexpr const char* kOption = "words";
// "At least as many": CLI11 then asks for more words until there are none. Its own "any number"
// would take a word such as [1,2] apart (Option::_add_result).
constexpr int kWordsMin = 100'000;

/// CLI11's, which would show that number.
class Layout final : public CLI::Formatter {
 public:
  explicit Layout(std::string shown) : shown_(std::move(shown)) {}
  std::string make_option_usage(const CLI::Option* option) const override {
    if (option->get_name() != kOption) return CLI::Formatter::make_option_usage(option);
    return "[" + shown_ + "]";
  }

 private:
  std::string shown_;
};

}  // namespace

void add_command_words(CLI::App& command, std::vector<std::string>& words,
                       const std::string& shown) {
  command.add_option(kOption, words, "")
      ->expected(kWordsMin, 2 * kWordsMin)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->option_text(shown);
  command.formatter(std::make_shared<Layout>(shown));
}

}  // namespace tj
