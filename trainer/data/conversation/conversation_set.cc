#include "trainer/data/conversation/conversation_set.h"

#include <algorithm>
#include <system_error>

#include "trainer/values/counter_random.h"

namespace tj::trainer {
namespace fs = std::filesystem;

Result<ConversationSet> ConversationSet::open(const ConversationSetOptions& options) {
  std::error_code failure;
  if (!options.data_root.empty() && !fs::is_directory(options.data_root, failure))
    return Error{.code = Code::not_found,
                 .message =
                     "is no folder; it must be that in which the pictures' paths begin, on "
                     "every node: is the volume mounted?",
                 .subject = "--data-root " + options.data_root};
  const auto paths = find_conversation_files(options.paths, options.flag);
  if (!paths) return paths.error();
  ConversationSet set;
  set.options_ = options;
  for (const auto& path : *paths) {
    auto file = ConversationFile::open(path);
    if (!file) return file.error();
    set.count_ += file->count();
    set.ends_.push_back(set.count_);
    set.files_.push_back(std::move(*file));
  }
  return set;
}

Result<fs::path> shown_path(const ShownFile& file, const fs::path& folder) {
  constexpr std::string_view kScheme = "file://";
  const auto written =
      file.path.starts_with(kScheme) ? file.path.substr(kScheme.size()) : file.path;
  const auto wrong = [](std::string what) {
    return Error{.code = Code::not_found, .message = std::move(what), .subject = {}};
  };
  if (written.empty() || written.find("://") != written.npos)
    return wrong("\"" + written.substr(0, 120) + "\" is no path of a file on this node");
  const auto path = folder / written;
  std::error_code failure;
  const auto status = fs::status(path, failure);
  if (fs::is_regular_file(status)) return path;
  if (!fs::exists(status)) return wrong(path.string() + " is not there");
  const std::string what = fs::is_directory(status) ? "a folder" : "no regular file";
  return wrong(path.string() + " is " + what + "; a picture or a video is one file");
}

std::pair<std::size_t, std::int64_t> ConversationSet::place_of(std::int64_t number) const {
  const auto file =
      static_cast<std::size_t>(std::ranges::upper_bound(ends_, number) - ends_.begin());
  return {file, number - (file == 0 ? 0 : ends_[file - 1])};
}

std::string ConversationSet::name(std::int64_t number) const {
  const auto [file, index] = place_of(number);
  return files_[file].name(index);
}

Result<Conversation> ConversationSet::read(std::int64_t number) const {
  const auto [file, index] = place_of(number);
  const auto text = files_[file].text(index);
  if (!text) return text.error();
  auto conversation = conversation_from(*text);
  if (conversation) return conversation;
  auto error = conversation.error();
  error.subject = name(number);
  return error;
}

Result<fs::path> ConversationSet::path_of(std::int64_t number, const ShownFile& file) const {
  const bool has_root = !options_.data_root.empty();
  const auto own = files_[place_of(number).first].path().parent_path();
  auto path = shown_path(file, has_root ? fs::path(options_.data_root) : own);
  if (path) return path;
  auto error = path.error();
  if (!has_root)
    error.message += "; paths begin at the folder of their file, as --data-root says no other";
  error.subject = name(number);
  return error;
}

std::uint64_t ConversationSet::digest() const {
  std::uint64_t digest = 0;
  for (const auto& file : files_) digest = mixed(digest ^ file.digest());
  return digest;
}

}  // namespace tj::trainer
