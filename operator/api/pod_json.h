// What several parts read of a pod's JSON, or of a template's: which container is the worker, and
// what it asks for.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tj {

/// The container whose end is the worker's: the first of the list. An empty object where there is
/// none.
const nlohmann::json& main_container(const nlohmann::json& pod);

/// The same to write to; null where there is none.
nlohmann::json* main_container_in(nlohmann::json& pod);

/// The quantity of `resource` in the container's "limits" or "requests", a number or a text, as
/// text; "" where there is none.
std::string quantity_of(const nlohmann::json& container, std::string_view list,
                        std::string_view resource);

}  // namespace tj
