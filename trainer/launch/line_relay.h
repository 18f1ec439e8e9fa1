// Brings the output of several processes to one descriptor, whole lines only, each with its
// process's prefix. Never blocks: a full target stops the reading, which in turn holds the writers
// back.
#pragma once
#include <poll.h>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/process/unique_fd.h"

namespace tj::trainer {

inline constexpr std::size_t kLineBytesMax = 64 * 1024;      // a longer line is broken there
inline constexpr std::size_t kPendingBytesMax = 256 * 1024;  // not yet taken by the target

/// Takes whole lines off `text` (up to "\n", or to a "\r" that starts the same line anew) and
/// returns them prefixed.
std::string take_lines(std::string& text, const std::string& prefix);

/// Takes whole lines, as they are written to the target.
using LineSink = std::function<void(std::string_view lines)>;

class LineRelay {
 public:
  /// `target` stays the caller's, and `also`, which gets all lines too, outlives this; it may be
  /// null, or empty.
  explicit LineRelay(int target, const LineSink* also = nullptr) : target_(target), also_(also) {}

  void add(UniqueFd source, std::string prefix);
  /// Appends what to wait for; handle() finds it again in the same order.
  void add_polls(std::vector<pollfd>& polls) const;
  /// Moves bytes where `polls` says that it is possible.
  void handle(const std::vector<pollfd>& polls);
  /// Nothing left to read, nothing left to write.
  bool done() const;
  /// No process is left that could write: takes what the pipes still hold and forgets them.
  void finish_sources();

 private:
  struct Source {
    UniqueFd fd;
    std::string prefix;
    std::string partial;  // begun, not ended line
  };
  bool readable_now() const { return pending_.size() < kPendingBytesMax; }
  /// False at the end of the source.
  bool read_some(Source& source);
  void close(Source& source);
  void pass_on(const std::string& lines);
  void write_some();
  void drop_everything();

  int target_;
  const LineSink* also_;
  std::vector<Source> sources_;
  std::string pending_;
};

}  // namespace tj::trainer
