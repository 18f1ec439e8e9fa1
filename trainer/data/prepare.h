// `trainer prepare`: text becomes a folder of tokens, by many workers, in bounded memory, and goes
// on where it was killed. The result depends on the input and the options, on nothing else.
//
// The text is cut into numbered parts (prepare_plan.h). Each part becomes its own token file,
// written durably, so what is there is done. manifest.json comes last and makes the set; while it
// is missing, .prepare.json says for which input and options the token files are.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/prepare_plan.h"
#include "trainer/data/token_manifest.h"
#include "trainer/data/tokenizer.h"
#include "trainer/values/failure.h"

namespace tj::trainer {

inline constexpr int kPrepareWorkersMax = 1024;

struct PrepareOptions {
  std::vector<std::string> inputs;
  std::string output;
  std::string tokenizer = "byte";
  std::string vocabulary;  // of bpe and gpt2-bpe: a file or a folder
  std::string format;      // folder, jsonl, wiki, parquet; empty: the files say it
  std::string field = "text";
  int workers = 0;        // 0: one for each usable core
  std::string val = "0";  // the share of the documents that is held out: "1%", "0.01"
  std::int64_t part_bytes = kPartBytes;
  std::filesystem::path parquet_plugin;  // empty: libtrainer_parquet.so beside this program
  bool operator==(const PrepareOptions&) const = default;
};

struct PrepareProgress {
  std::int64_t bytes_done = 0;  // of text, by this run or by one before it
  std::int64_t bytes_kept = 0;  // of these, by one before it
  std::int64_t bytes = 0;
  std::size_t parts_done = 0;
  std::size_t parts = 0;
  int workers = 0;
  double seconds = 0;
};

/// 37 % | 384.0 of 1024.0 MB | 48/128 parts | 18.2 MB/s | ETA 35 s
std::string progress_line(const PrepareProgress& progress);

struct PrepareHooks {
  std::function<void(const PrepareProgress&)> progress;  // from the calling thread
  std::function<int()> stop_signal = [] { return 0; };   // from any thread; not 0: stop now
  std::chrono::milliseconds progress_interval{5000};
};

struct PrepareEnd {
  std::optional<Failure> failure;
  TokenManifest manifest;  // without a failure
  std::int64_t rows = 0;   // of Parquet, those without text among them
  PrepareProgress progress;
};

/// Needs workers >= 1.
PrepareEnd prepare(const PrepareOptions& options, const PrepareHooks& hooks);

}  // namespace tj::trainer
