// Answers what tests/interop/run asks of conversations, JSON to JSON, bytes in
// hexadecimal:
//
//   conversation_probe ids TOKENIZER TEXTS ANSWER    ids of each text
//   conversation_probe samples ORDER ANSWER          tensors of each conversation, a batch each
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "trainer/data/bpe_files.h"
#include "trainer/workloads/qwen_vggt/conversation_data.h"
#include "trainer/workloads/qwen_vggt/pixel_patches.h"

namespace tj::trainer {
namespace {
using json = nlohmann::json;

json read(const char* file) {
  std::ifstream stream(file);
  return json::parse(stream);
}

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", describe(error).c_str());
  return 1;
}

int answer_ids(const char* const* arguments) {
  const auto vocabulary = read_bpe_vocabulary(arguments[0]);
  if (!vocabulary) return fail(vocabulary.error());
  BpeEncoder encoder(*vocabulary);
  json answer = json::array();
  for (const auto& text : read(arguments[1])) {
    std::vector<std::uint32_t> ids;
    encoder.encode(text.get<std::string>(),
                   [&ids](auto more) { ids.insert(ids.end(), more.begin(), more.end()); });
    answer.push_back(ids);
  }
  std::ofstream(arguments[2]) << answer.dump();
  return 0;
}

json values_of(const HostTensor& tensor) {
  if (tensor.type == HostTensor::Type::uint8) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string values;
    for (const auto byte : tensor.bytes) {
      values += kDigits[static_cast<std::size_t>(byte >> 4)];
      values += kDigits[static_cast<std::size_t>(byte & std::byte{15})];
    }
    return values;
  }
  std::vector<std::int32_t> values(tensor.bytes.size() / sizeof(std::int32_t));
  if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

ConversationShape shape_of(const json& order) {
  ConversationShape shape{.patches = {}, .ids = {}, .mrope = {}};
  const auto& ids = order.at("ids");
  shape.ids = {.turn_begin = ids[0],
               .turn_end = ids[1],
               .vision = {.begin = ids[2], .end = ids[3], .image = ids[4], .video = ids[5]}};
  shape.mrope.ids = shape.ids.vision;
  shape.has_geometry = order.value("geometry", false);
  return shape;
}

int answer_samples(const char* const* arguments) {
  const auto order = read(arguments[0]);
  ConversationOptions options{.tokenizer = order.at("tokenizer"),
                              .data_root = order.value("data_root", ""),
                              .index = {},
                              .tokens_max = order.value("tokens_max", 8192)};
  options.history_pictures_max = order.value("history", 8);
  options.bad_share_max = 0;
  options.picture_plugin = order.at("plugin").get<std::string>();
  options.video_plugin = order.value("video_plugin", "");
  const auto opened =
      open_conversations({.flag = "--data", .paths = {order.at("data").get<std::string>()}}, {},
                         shape_of(order), options);
  if (opened.failure) {
    std::fprintf(stderr, "%s\n", opened.failure->message.c_str());
    return 1;
  }
  json answer = json::array();
  for (std::int64_t index = 0; index < opened.source->sample_count(); ++index) {
    const Sample sample{.index = index};
    const auto batch = opened.source->read({&sample, 1});
    if (!batch) return fail(batch.error());
    json tensors = json::array();
    for (const auto& tensor : batch->tensors)
      tensors.push_back({{"shape", tensor.shape}, {"values", values_of(tensor)}});
    answer.push_back({{"tensors", tensors}, {"weight", batch->weight}});
  }
  std::ofstream(arguments[1]) << answer.dump();
  return 0;
}

}  // namespace
}  // namespace tj::trainer

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "ids" && argc == 5) return tj::trainer::answer_ids(argv + 2);
  if (what == "samples" && argc == 4) return tj::trainer::answer_samples(argv + 2);
  std::fputs("usage: conversation_probe ids|samples, as its head says\n", stderr);
  return 2;
}
