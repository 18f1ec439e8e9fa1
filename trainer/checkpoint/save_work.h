// One rank's part of writing one checkpoint, in small pieces: whoever has time drives it. Knows the
// other writers only by the notes they leave in the shared draft folder.
#pragma once
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "contract/result.h"
#include "trainer/checkpoint/file_plan.h"
#include "trainer/checkpoint/folder.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/retention.h"
#include "trainer/process/durable_file.h"

namespace tj::trainer {

struct SaveOrder {
  std::filesystem::path out;
  std::string run_id;  // of this run on all its ranks: a draft of an earlier one is another folder
  int writer = 0;
  int writers = 1;
  Manifest manifest;                                   // without files
  std::string config_json;                             // the text of config.json
  std::map<std::string, std::string> more_files = {};  // beside it: name -> content
  RetentionPolicy retention;
  std::vector<std::string> own;  // OwnCheckpoints, this one included
  OutClaim claim;                // whose the folder must be
  /// How long the first writer, its own part written, waits for one that writes no more; none: for
  /// ever.
  std::optional<std::chrono::milliseconds> others_max = {};
};

/// A file in the making.
struct FileContent {
  std::string name;
  std::string head;
  std::vector<std::span<const std::byte>> parts;  // after the head
};

class SaveWork {
 public:
  enum class State {
    busy,       // there is more to do at once
    waiting,    // for other writers: look again soon
    own_done,   // this writer's part is on the disk, and the note about it; the first one goes on
    committed,  // the checkpoint is there (first writer only)
  };

  /// The files this writer writes, and the indices of all.
  SaveWork(SaveOrder order, std::vector<FileContent> files,
           std::map<std::string, std::string> indices);

  /// Does about a megabyte of work. After an error nothing more may be called. The draft of a first
  /// writer that did not commit goes with the object.
  Result<State> advance();
  /// Where it is once committed.
  const std::filesystem::path& path() const { return path_; }

 private:
  Result<State> write_some();
  Result<State> leave_note();
  Result<State> gather();
  bool is_gather_over();
  Result<State> commit();
  Result<bool> read_note(int writer);

  SaveOrder order_;
  std::vector<FileContent> files_;
  std::map<std::string, std::string> indices_;  // file name -> text, first writer only
  std::optional<CheckpointDraft> draft_;
  std::optional<DurableFile> open_;
  std::size_t file_ = 0;
  std::size_t part_ = 0;
  std::size_t offset_ = 0;
  bool has_written_ = false;
  int next_note_ = 1;
  std::optional<std::chrono::steady_clock::time_point> gather_end_;
  std::uintmax_t gathered_bytes_ = 0;
  std::map<std::string, FileDigest> digests_;
  std::filesystem::path path_;
};

/// What a writer that failed tells the first one. Best effort.
void leave_failure_note(const SaveOrder& order, const Error& error) noexcept;

}  // namespace tj::trainer
