// The log of a worker of a local run: its file, from near its end, and what is written to it.
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <fstream>
#include <optional>
#include <utility>

#include "cli/ui/log_stream.h"

namespace tj::ui {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLookAgain{250};
constexpr int kLooksUntilHeartbeat = 60;
constexpr std::size_t kChunkBytes = 64 * 1024;

class FileLog final : public HttpStream {
 public:
  FileLog(boost::asio::io_context& loop, fs::path file, const std::string& last_id,
          std::function<bool()> has_ended)
      : timer_(loop), file_(std::move(file)), has_ended_(std::move(has_ended)) {
    std::uintmax_t seen = 0;
    const char* const end = last_id.data() + last_id.size();
    const bool is_number = std::from_chars(last_id.data(), end, seen).ptr == end;
    if (is_number && !last_id.empty()) offset_ = seen;
  }

  void next(Give give) override {
    give_ = std::move(give);
    look();
  }

 private:
  void look() {
    if (is_over_) return give_({});
    const bool had_ended = has_ended_();  // before the file is read: nothing is written after it
    std::vector<std::string> lines = take_lines();
    if (!lines.empty()) return give_(lines_event(lines, place()));
    if (had_ended) {
      is_over_ = true;
      std::string rest;
      if (!rest_.empty()) rest = lines_event({std::exchange(rest_, {})}, place());
      return give_(rest + end_event("this worker's log has ended"));
    }
    if (++looks_ % kLooksUntilHeartbeat == 0) return give_(kHeartbeat);
    timer_.expires_after(kLookAgain);
    timer_.async_wait([this, alive = std::weak_ptr(alive_)](auto failure) {
      if (!failure && !alive.expired()) look();
    });
  }

  /// Behind the last line that is whole.
  std::string place() const { return std::to_string(offset_.value_or(0) - rest_.size()); }

  /// Begins with the first whole line of the last kLogTailBytes.
  std::vector<std::string> take_lines() {
    std::error_code failure;
    const auto size = fs::file_size(file_, failure);
    if (failure) return {};
    if (!offset_ || *offset_ > size) {  // a smaller file is another one
      offset_ = size > kLogTailBytes ? size - kLogTailBytes : 0;
      skips_part_ = *offset_ > 0;
      rest_.clear();
    }
    std::ifstream stream(file_, std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(*offset_));
    std::string bytes(std::min<std::uintmax_t>(size - *offset_, kChunkBytes), '\0');
    stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(stream.gcount()));
    *offset_ += bytes.size();
    return split(bytes);
  }

  std::vector<std::string> split(const std::string& bytes) {
    std::vector<std::string> lines;
    rest_ += bytes;
    std::size_t begin = 0;
    for (auto end = rest_.find('\n'); end != std::string::npos;
         begin = end + 1, end = rest_.find('\n', begin)) {
      if (!std::exchange(skips_part_, false)) lines.push_back(rest_.substr(begin, end - begin));
    }
    rest_.erase(0, begin);
    if (rest_.size() > kChunkBytes) lines.push_back(std::exchange(rest_, {}));  // it is cut anyway
    return lines;
  }

  boost::asio::steady_timer timer_;
  fs::path file_;
  std::function<bool()> has_ended_;
  Give give_;
  std::optional<std::uintmax_t> offset_;
  std::string rest_;  // of a line that is not whole
  bool skips_part_ = false;
  bool is_over_ = false;
  int looks_ = 0;
  // A handler that asio has queued already outlives its timer.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace

std::unique_ptr<HttpStream> follow_file(boost::asio::io_context& loop, fs::path file,
                                        const LogQuestion& question,
                                        std::function<bool()> has_ended) {
  return std::make_unique<FileLog>(loop, std::move(file), question.last_id, std::move(has_ended));
}

}  // namespace tj::ui
