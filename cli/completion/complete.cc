#include "cli/completion/complete.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/jobs/place.h"
#include "cli/jobs/table.h"
#include "cli/plain_text.h"
#include "operator/api/read.h"

namespace tj {
namespace {

constexpr std::chrono::milliseconds kNamesDeadline{1'500};  // a person waits at each Tab
constexpr int kNamesMax = 500;
constexpr const char* kHiddenCommand = "__complete";

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// The place on the command line where the last word stands.
struct Position {
  const CLI::App* app = nullptr;
  const CLI::Option* value_of = nullptr;  // the word is the value of this option
  std::size_t positionals = 0;            // that came before
  bool only_positionals = false;          // after --
};

const CLI::Option* option_of(const CLI::App& app, const std::string& word) {
  for (const CLI::Option* option : app.get_options()) {
    if (word.starts_with("--") && option->check_lname(word.substr(2))) return option;
    if (word.size() == 2 && word[0] == '-' && option->check_sname(word.substr(1))) return option;
  }
  return nullptr;
}

bool takes_value(const CLI::Option* option) {
  return option != nullptr && option->get_items_expected_max() > 0;
}

const CLI::App* subcommand_of(const CLI::App& app, const std::string& word) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->check_name(word)) return command;
  }
  return nullptr;
}

Position walk(const CLI::App& app, const std::vector<std::string>& words) {
  Position at{.app = &app};
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (at.value_of != nullptr) {
      at.value_of = nullptr;
    } else if (!at.only_positionals && word == "--") {
      at.only_positionals = true;
    } else if (!at.only_positionals && word.starts_with("-")) {
      const CLI::Option* option = option_of(*at.app, word);
      if (takes_value(option)) at.value_of = option;
    } else if (const CLI::App* next = subcommand_of(*at.app, word)) {
      at = Position{.app = next};
    } else {
      ++at.positionals;
    }
  }
  return at;
}

const CLI::Option* positional_at(const CLI::App& app, std::size_t index) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const auto most = static_cast<std::size_t>(std::max(option->get_items_expected_max(), 0));
    if (index < most) return option;
    index -= most;
  }
  return nullptr;
}

void add(Completion& completion, const std::string& prefix, Candidate candidate) {
  if (!candidate.word.starts_with(prefix)) return;
  candidate.description = plain_line(first_line(candidate.description));
  completion.candidates.push_back(std::move(candidate));
}

void add_values(Completion& completion, const CLI::Option& option,
                const std::vector<std::string>& words, const ListNames& list_names) {
  const std::string described = option.get_type_name();  // with what its checks say: INT:[1 - 9]
  const std::string type = described.substr(0, described.find(':'));
  std::string prefix = words.back();
  std::string before;  // --output=ya: the word has the flag in it
  if (prefix.starts_with("--")) {
    const auto equals = prefix.find('=');
    before = equals == std::string::npos ? "" : prefix.substr(0, equals + 1);
    prefix = prefix.substr(before.size());
  }
  if (type == "FILE" || type == "PATH" || type == "DIR") completion.wants_files = true;
  if (type == "JOB") {
    for (const std::string& name : list_names(words)) {
      if (name.starts_with(prefix)) completion.candidates.push_back({before + name, ""});
    }
  }
  if (type.find('|') == std::string::npos) return;
  for (std::size_t begin = 0; begin <= type.size();) {
    const std::size_t end = std::min(type.find('|', begin), type.size());
    const std::string value = type.substr(begin, end - begin);
    if (value.starts_with(prefix)) completion.candidates.push_back({before + value, ""});
    begin = end + 1;
  }
}

void add_flags(Completion& completion, const CLI::App& app, const std::string& prefix) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames())
      add(completion, prefix, {"--" + name, option->get_description()});
    if (!option->get_lnames().empty()) continue;
    for (const std::string& name : option->get_snames())
      add(completion, prefix, {"-" + name, option->get_description()});
  }
}

/// The words that say where jobs are; what else stands on the command line does not matter.
PlaceOptions place_of(const std::vector<std::string>& words) {
  PlaceOptions options;
  const auto value = [&](std::size_t i, const std::string& name) -> std::optional<std::string> {
    if (words[i].starts_with(name + "=")) return words[i].substr(name.size() + 1);
    return words[i] == name && i + 1 < words.size() ? std::optional(words[i + 1]) : std::nullopt;
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--local") options.local = true;
    if (const auto file = value(i, "--kubeconfig")) options.session.kubeconfig = *file;
    if (const auto context = value(i, "--context")) options.session.context = *context;
    for (const char* name : {"-n", "--namespace"}) {
      if (const auto ns = value(i, name)) options.session.ns = *ns;
    }
  }
  return options;
}

/// One page at most, and nothing where there is no answer in time.
std::vector<std::string> names_of_jobs(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  const auto place = Place::open(place_of(words));
  if (!place) return names;
  const auto page = (*place)->session().call({.verb = Verb::list,
                                              .resource = Resource::training_jobs,
                                              .ns = (*place)->ns(),
                                              .limit = kNamesMax,
                                              .deadline = kNamesDeadline});
  if (!page) return names;
  for (const auto& job : read::array_at(*page, "items"))
    names.push_back(plain_line(read::string_at(read::object_at(job, "metadata"), "name")));
  return names;
}

}  // namespace

Completion complete(const CLI::App& app, const std::vector<std::string>& words,
                    const ListNames& list_names) {
  Completion completion;
  if (words.empty()) return completion;
  const Position at = walk(app, words);
  const std::string& last = words.back();
  if (at.value_of != nullptr) {
    add_values(completion, *at.value_of, words, list_names);
    return completion;
  }
  if (!at.only_positionals && last.starts_with("-")) {
    const auto equals = last.find('=');
    const CLI::Option* option =
        equals == std::string::npos ? nullptr : option_of(*at.app, last.substr(0, equals));
    if (takes_value(option)) {
      add_values(completion, *option, words, list_names);
    } else {
      add_flags(completion, *at.app, last);
    }
    return completion;
  }
  for (const CLI::App* command : at.app->get_subcommands({})) {
    if (!command->get_group().empty() && !command->get_name().empty())
      add(completion, last, {command->get_name(), command->get_description()});
  }
  if (const CLI::Option* positional = positional_at(*at.app, at.positionals))
    add_values(completion, *positional, words, list_names);
  return completion;
}

std::string to_text(const Completion& completion) {
  std::string text = completion.wants_files ? "files\n" : "words\n";
  for (const Candidate& candidate : completion.candidates) {
    text += candidate.word;
    if (!candidate.description.empty()) text += "\t" + candidate.description;
    text += "\n";
  }
  return text;
}

std::optional<int> answer_completion(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || std::string(argv[1]) != kHiddenCommand) return std::nullopt;
  std::vector<std::string> words(argv + 2, argv + argc);
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  const std::string text = to_text(complete(app, words, names_of_jobs));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace tj
