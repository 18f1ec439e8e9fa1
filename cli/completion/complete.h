// What may come next on a command line, from the program's own options: shells ask for it at each
// Tab (`tj __complete -- WORD...`), so that it is never out of date.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tj {

struct Candidate {
  std::string word;
  std::string description;
  bool operator==(const Candidate&) const = default;
};

struct Completion {
  bool wants_files = false;  // the shell knows them better
  std::vector<Candidate> candidates;
  bool operator==(const Completion&) const = default;
};

/// The names of jobs, asked with the words of the command line so far: its --context, -n, --local.
using ListNames = std::function<std::vector<std::string>(const std::vector<std::string>& words)>;

/// `words` are those after the program's name; the last is the one that is being written, perhaps
/// empty. A positional, or a value, of the type JOB is a job's name, of FILE a file, of a|b one of
/// these.
Completion complete(const CLI::App& app, const std::vector<std::string>& words,
                    const ListNames& list_names);

/// `files` or `words` in the first line, then a line for each candidate: the word, a tab and its
/// description.
std::string to_text(const Completion& completion);

/// The hidden command of the scripts. Absent: the command line is another one.
std::optional<int> answer_completion(const CLI::App& app, int argc, char** argv);

}  // namespace tj
