// What a rank says: whole lines on standard output and error, the same lines with a time in a file,
// and on a terminal one line that is drawn anew below them. One event is one line is one write, so
// that lines of several ranks never mix. Any thread may speak; what is no UTF-8 (a path) is made
// valid.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "contract/result.h"

namespace tj::trainer {

/// Writes one line to standard output (or error) at once.
void say(const std::string& line);
void say_error(const std::string& line);

/// From now on each line goes to `file` too, after its time: 2026-01-31T12:34:56.789Z. Begins with
/// `heading`, and what was said before. Makes the folder. Fails when the disk says no: then the
/// lines are on standard output only.
Result<void> log_lines_to(const std::filesystem::path& file, const std::string& heading);

/// Whole lines that another process has printed go to the file of log_lines_to() alone, each after
/// the time. Fails when the disk says no.
Result<void> log_lines(std::string_view lines);

/// True where standard output is a terminal that can draw a line again.
bool is_terminal();
/// The width of the terminal in columns.
int terminal_columns();
/// Draws `bar` below the lines, in place of the one before; empty: takes it away.
void draw_bar(const std::string& bar);

/// Appends `line` to `file`. Fails when the disk says no.
Result<void> append_line(const std::filesystem::path& file, const std::string& line);

}  // namespace tj::trainer
