#include "cli/man_page.h"

#include <CLI/CLI.hpp>
#include <sstream>

namespace tj {
namespace {

constexpr const char* kEnvironment = R"(.SH ENVIRONMENT
.TP
.B KUBECONFIG
kubeconfig files, separated by colons, as with kubectl.
.TP
.B XDG_STATE_HOME
where local runs are registered, in trainingjob/runs (~/.local/state).
.TP
.B TJ_TRAINER_PATH
the folder of the trainer, or the program itself.
.TP
.B NO_COLOR
no colours, when it is not empty.
.SH "SEE ALSO"
.BR kubectl (1)
)";

/// Text for troff: a backslash is none, a hyphen is the one that can be typed, and a line that
/// begins like a request is none.
std::string escaped(const std::string& text) {
  std::string out;
  bool at_begin = true;
  for (const char letter : text) {
    if (at_begin && (letter == '.' || letter == '\'')) out += "\\&";
    if (letter == '\\') {
      out += "\\e";
    } else if (letter == '-') {
      out += "\\-";
    } else {
      out += letter;
    }
    at_begin = letter == '\n';
  }
  return out;
}

/// One line within quotes, of a macro's argument.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char letter : escaped(text)) out += letter == '"' ? "\\(dq" : std::string(1, letter);
  return "\"" + out + "\"";
}

/// Without what the option's checks say of it, as in INT:[1 - 9].
std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

std::string value_of(const CLI::Option& option) {
  return option.get_items_expected_max() > 0 ? type_of(option) : "";
}

/// `-o, --output json|yaml`
std::string flag_names(const CLI::Option& option) {
  std::string names;
  const auto add = [&names](const std::string& name) {
    names += (names.empty() ? "" : ", ") + ("\\fB" + escaped(name) + "\\fR");
  };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  const std::string value = value_of(option);
  return value.empty() ? names : names + " \\fI" + escaped(value) + "\\fR";
}

std::string sentence(const std::string& text) {
  return text.empty() || text.ends_with('.') ? text : text + ".";
}

/// Examples and exit codes, as they are in --help.
std::string verbatim(const std::string& text) {
  std::string plain = text;
  while (plain.starts_with('\n')) plain.erase(0, 1);
  return plain.empty() ? "" : ".PP\n.nf\n" + escaped(plain) + "\n.fi\n";
}

std::string usage_of(const CLI::App& command, const std::string& program) {
  std::string usage = program + " " + command.get_name();
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const bool many = option->get_items_expected_max() > 1;
    usage += " " + type_of(*option) + (many ? "..." : "");
  }
  return usage + " [OPTION]...";
}

void write_options(std::ostream& page, const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const bool is_shown = option->nonpositional() && !option->get_group().empty();
    if (!is_shown) continue;
    page << ".TP\n"
         << flag_names(*option) << "\n"
         << escaped(sentence(option->get_description())) << "\n";
  }
}

/// A command without a footer of its own has that of its parent.
std::string own_footer(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  const bool is_inherited = parent != nullptr && parent->get_footer() == command.get_footer();
  return is_inherited ? "" : command.get_footer();
}

void write_command(std::ostream& page, const CLI::App& command, const std::string& program) {
  page << ".SS " << quoted(usage_of(command, program)) << "\n"
       << escaped(sentence(command.get_description())) << "\n";
  write_options(page, command);
  page << verbatim(own_footer(command));
}

}  // namespace

std::string man_page(const CLI::App& app) {
  std::ostringstream page;
  const std::string program = "tj";  // however it was called
  page << ".TH TJ 1 \"\" " << quoted(app.version()) << " \"TrainingJob\"\n"
       << ".SH NAME\ntj \\- TrainingJobs from the command line\n"
       << ".SH SYNOPSIS\n.B tj\n\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.br\n.B kubectl tj\n"
       << "\\fICOMMAND\\fR [\\fIOPTION\\fR]...\n"
       << ".SH DESCRIPTION\n"
       << escaped(sentence(app.get_description())) << "\n"
       << verbatim(app.get_footer()) << ".SH OPTIONS\n";
  write_options(page, app);
  page << ".SH COMMANDS\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    const bool is_shown = !command->get_group().empty() && !command->get_name().empty();
    if (is_shown) write_command(page, *command, program);
  }
  page << kEnvironment;
  return page.str();
}

}  // namespace tj
