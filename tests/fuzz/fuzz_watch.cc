// What a watch streams and a list answers, in any pieces.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/json.h"
#include "operator/kube/cache.h"
#include "operator/kube/line_splitter.h"
#include "operator/kube/watcher.h"
#include "tests/fuzz/fuzzed.h"

namespace {
using nlohmann::json;
constexpr std::size_t kLineBytesMax = 4096;

std::vector<std::string> lines_of(std::string_view text, std::size_t piece_bytes) {
  tj::LineSplitter splitter(kLineBytesMax);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size(); at += piece_bytes)
    for (auto& line : splitter.feed(text.substr(at, piece_bytes))) lines.push_back(std::move(line));
  return lines;
}

void take(tj::Cache<tj::Pod>& cache, const json& document, bool erases) {
  (void)tj::trim_node(document);
  (void)tj::trim_service(document);
  (void)tj::job_from_json(document);
  const auto pod = tj::trim_pod(document);
  if (!pod) return;
  if (erases) {
    cache.erase(*pod);
  } else {
    cache.upsert(*pod);
  }
}

void apply(tj::Cache<tj::Pod>& cache, const tj::WatchStep& step) {
  for (const auto& delta : step.deltas) {
    if (const auto* page = std::get_if<tj::Replace>(&delta))
      for (const auto& object : page->objects)
        take(cache, json::parse(object),
             false);  // throws if the watcher let something else through
    if (const auto* put = std::get_if<tj::Upsert>(&delta)) take(cache, *put->object, false);
    if (const auto* gone = std::get_if<tj::Erase>(&delta)) take(cache, *gone->object, true);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text = tj::fuzz::text_of(data, size);
  const auto lines = lines_of(text, std::max<std::size_t>(1, text.size()));
  TJ_CHECK(lines == lines_of(text, 1) && lines == lines_of(text, 7), "pieces change no line");
  tj::Cache<tj::Pod> cache;
  tj::Watcher watcher;
  watcher.start();
  apply(cache, watcher.on_list(text));
  for (const auto& line : lines) {
    if (!watcher.synced()) watcher.on_list(std::string(R"({"metadata":{"resourceVersion":"1"}})"));
    apply(cache, watcher.on_line(line));
    apply(cache, watcher.on_waited());
    apply(cache, watcher.on_list(line));
  }
  return 0;
}
