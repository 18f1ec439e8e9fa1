#include "trainer/workloads/qwen_vggt/open_turns.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace tj::trainer {
namespace {
using nlohmann::json;

constexpr std::size_t kTurnsMax = 10'000;

/// The two ways in which such files say a turn.
struct Form {
  const char* list;
  const char* role;
  const char* text;
};
constexpr std::array<Form, 2> kForms{Form{"conversations", "from", "value"},
                                     Form{"messages", "role", "content"}};

Error wrong(const std::string& field, std::string message) {
  return {.code = Code::invalid, .message = std::move(message), .subject = field};
}

std::optional<ChatRole> role_of(const std::string& name) {
  if (name == "human" || name == "user") return ChatRole::user;
  if (name == "gpt" || name == "assistant") return ChatRole::assistant;
  if (name == "system") return ChatRole::system;
  return std::nullopt;
}

Result<ChatTurn> turn_of(const json& object, const Form& form, const std::string& where) {
  const auto text_at = [&](const char* key) -> std::optional<std::string> {
    if (!object.is_object()) return std::nullopt;
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) return std::nullopt;
    return found->get<std::string>();
  };
  const auto role = text_at(form.role), text = text_at(form.text);
  if (!role) return wrong(where + "." + form.role, "is no text");
  if (!text) return wrong(where + "." + form.text, "is no text");
  const auto known = role_of(*role);
  if (!known)
    return wrong(where + "." + form.role,
                 "is \"" + *role + "\"; it must be human, user, gpt, assistant or system");
  return ChatTurn{.role = *known, .text = *text};
}

Result<void> add_turns(const json& list, const Form& form, OpenTurns& into) {
  if (!list.is_array() || list.empty() || list.size() > kTurnsMax)
    return wrong(form.list, "must be a list of 1 to " + std::to_string(kTurnsMax) + " turns");
  for (std::size_t at = 0; at < list.size(); ++at) {
    auto turn = turn_of(list[at], form, std::string(form.list) + "[" + std::to_string(at) + "]");
    if (!turn) return turn.error();
    into.turns.push_back(std::move(*turn));
  }
  while (!into.turns.empty() && into.turns.back().role == ChatRole::assistant)
    into.turns.pop_back();
  if (into.turns.empty() || into.turns.back().role != ChatRole::user)
    return wrong(form.list, "has no turn of the user to be answered");
  return {};
}

Result<void> add_pictures(const json& document, const std::filesystem::path& folder,
                          OpenTurns& into) {
  for (const char* const key : {"image", "images"}) {
    const auto found = document.find(key);
    if (found == document.end() || found->is_null()) continue;
    const auto list = found->is_array() ? *found : json::array({*found});
    for (const auto& name : list) {
      if (!name.is_string()) return wrong(key, "must be the name of a file, or a list of them");
      into.pictures.push_back(folder / name.get<std::string>());
    }
  }
  return {};
}

}  // namespace

Result<OpenTurns> open_turns_from(std::string_view text, const std::filesystem::path& folder) {
  const auto document = json::parse(text, nullptr, false);
  if (!document.is_object()) return wrong("conversation", "is not a JSON object (cut short?)");
  OpenTurns open;
  const Form* form = nullptr;
  for (const auto& known : kForms)
    if (document.contains(known.list)) form = &known;
  if (form == nullptr) return wrong("conversation", "has neither conversations nor messages");
  if (const auto added = add_turns(document[form->list], *form, open); !added) return added.error();
  if (const auto added = add_pictures(document, folder, open); !added) return added.error();
  return open;
}

}  // namespace tj::trainer
