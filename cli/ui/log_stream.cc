#include "cli/ui/log_stream.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "contract/utf8.h"

namespace tj::ui {
namespace {

class NoLog final : public HttpStream {
 public:
  explicit NoLog(std::string why) : event_(end_event(why)) {}
  void next(Give give) override { give(std::exchange(event_, std::nullopt)); }

 private:
  std::optional<std::string> event_;
};

}  // namespace

std::string lines_event(const std::vector<std::string>& lines, const std::string& id,
                        std::size_t lost) {
  nlohmann::json data = {{"lines", nlohmann::json::array()}, {"lost", lost}};
  for (const std::string& line : lines) {
    const bool is_cut = line.size() > kLogLineBytesMax;
    data["lines"].push_back(with_invalid_utf8_replaced(line.substr(0, kLogLineBytesMax)) +
                            (is_cut ? " …" : ""));
  }
  return "id: " + id + "\ndata: " + data.dump() + "\n\n";
}

std::string end_event(const std::string& why) {
  return "event: end\ndata: " + nlohmann::json{{"why", with_invalid_utf8_replaced(why)}}.dump() +
         "\n\n";
}

std::unique_ptr<HttpStream> no_log(std::string why) {
  return std::make_unique<NoLog>(std::move(why));
}

}  // namespace tj::ui
