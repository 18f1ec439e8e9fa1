#include "cli/ui/reply.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/ui/page_files.h"

namespace tj::ui {
namespace {

using nlohmann::json;

constexpr int kNotFound = 404;
constexpr const char* kJson = "application/json; charset=utf-8";

const HttpHeaders& safe_headers() {
  static const HttpHeaders headers = {
      {"Content-Security-Policy",
       "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
       "frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"X-Frame-Options", "DENY"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Opener-Policy", "same-origin"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cache-Control", "no-store"}};
  return headers;
}

const char* content_type_of(std::string_view path) {
  constexpr std::pair<std::string_view, const char*> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".svg", "image/svg+xml"}};
  for (const auto& [suffix, type] : kTypes) {
    if (path.ends_with(suffix)) return type;
  }
  return "text/plain; charset=utf-8";
}

}  // namespace

HttpReply failure(int status, const std::string& why) {
  HttpReply reply = document({{"error", why}});
  reply.status = status;
  return reply;
}

HttpReply document(const json& content) {
  return {.body = content.dump(-1, ' ', false, json::error_handler_t::replace),
          .content_type = kJson};
}

HttpReply page_file(const std::string& path) {
  const auto files = page_files();
  const auto found = std::ranges::find(files, path, &PageFile::path);
  if (found == files.end()) return failure(kNotFound, "there is no such page");
  return {.body = std::string(found->bytes), .content_type = content_type_of(path)};
}

void add_safe_headers(HttpReply& reply) {
  const auto& headers = safe_headers();
  reply.headers.insert(reply.headers.end(), headers.begin(), headers.end());
}

}  // namespace tj::ui
