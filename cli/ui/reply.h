// The kinds of answers that the page and its interface give.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/loop/http_server.h"

namespace tj::ui {

/// {"error": why}
HttpReply failure(int status, const std::string& why);
/// Everything that goes to a page is text of others; what is no UTF-8 of it is replaced.
HttpReply document(const nlohmann::json& content);
/// A file of the page, by its path below cli/ui/page; 404 where there is none.
HttpReply page_file(const std::string& path);
/// Nothing is loaded from elsewhere, nothing is kept, nobody shows the page in a frame of his own.
void add_safe_headers(HttpReply& reply);

}  // namespace tj::ui
