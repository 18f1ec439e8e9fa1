// What others wrote (a program's log, a server's message, a file's name), made fit for a terminal:
// a control character in it could move the cursor, rename the window or answer in the person's
// name. Pure.
#pragma once
#include <string>
#include <string_view>

namespace tj {

/// Replaced with U+FFFD: control characters, what turns the direction of writing, and what is not
/// UTF-8. Tabs stay and, `with_colours`, the sequences that set colours (ESC [ ... m).
std::string without_controls(std::string_view text, bool with_colours = false);

/// The same on one line: line breaks and tabs become spaces, and none stands at the end.
std::string plain_line(std::string_view text);

}  // namespace tj
