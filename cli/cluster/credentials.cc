#include "cli/cluster/credentials.h"

#include <algorithm>
#include <utility>

#include "cli/cluster/base64.h"
#include "operator/kube/rest_request.h"

namespace tj {
namespace {

/// The code of what failed must not leave here: a token that is not found is not a pod that is not
/// found.
Error as_credentials_error(const Error& error, Code code, const std::string& server) {
  if (code == Code::forbidden && error.subject.find(": users[") != std::string::npos)
    return Error{code, error.message, error.subject, {}};
  return Error{code, describe(error), server, {}};
}

bool fits_in_a_header(const std::string& text) {
  return std::none_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < ' ' || byte == 0x7f;
  });
}

/// client-go, transport/round_trippers.go: headerKeyEscape of a key.
void add_impersonation(const Impersonation& as, std::vector<Header>& headers) {
  if (as.user.empty()) return;
  headers.push_back({"Impersonate-User", as.user});
  if (!as.uid.empty()) headers.push_back({"Impersonate-Uid", as.uid});
  for (const std::string& group : as.groups) headers.push_back({"Impersonate-Group", group});
  for (const auto& [key, value] : as.extra)
    headers.push_back({"Impersonate-Extra-" + percent_encode(key), value});
}

}  // namespace

Credentials::Credentials(KubeConfig config, RunPlugIn run_plug_in, WallClock now)
    : config_(std::move(config)),
      run_plug_in_(std::move(run_plug_in)),
      now_(std::move(now)),
      token_(config_.token, config_.token_file) {}

bool Credentials::needs_plug_in() const {
  if (!config_.exec) return false;
  return !credential_ || (credential_->expires && now_() > *credential_->expires);
}

Result<void> Credentials::load_identity() {
  Result<std::shared_ptr<TlsIdentity>> identity = TlsIdentity::load(config_);
  if (!identity) return as_credentials_error(identity.error(), Code::unavailable, config_.server);
  identity_ = *identity;
  return {};
}

Result<void> Credentials::run_plug_in() {
  Result<ExecCredential> answer = run_plug_in_(config_);
  if (!answer) return as_credentials_error(answer.error(), Code::forbidden, config_.server);
  credential_ = *answer;
  const bool has_new_certificate = config_.client_certificate_pem != answer->certificate_pem ||
                                   config_.client_key_pem != answer->key_pem;
  config_.client_certificate_pem = answer->certificate_pem;
  config_.client_key_pem = answer->key_pem;
  if (has_new_certificate) identity_ = nullptr;
  return {};
}

Result<Authority> Credentials::current() {
  if (needs_plug_in()) {
    const Result<void> ran = run_plug_in();
    if (!ran) return ran.error();
  }
  if (!identity_) {
    const Result<void> loaded = load_identity();
    if (!loaded) return loaded.error();
  }
  Authority authority{.headers = {}, .token = {}, .identity = identity_};
  if (credential_) {
    authority.token = credential_->token;
  } else {
    Result<std::string> token = token_.current(std::chrono::steady_clock::now());
    if (!token) return as_credentials_error(token.error(), Code::forbidden, config_.server);
    authority.token = *token;
  }
  if (!fits_in_a_header(authority.token))
    return Error{Code::forbidden, "the token holds control characters", config_.server, {}};
  if (!authority.token.empty()) {
    authority.headers.push_back({"Authorization", "Bearer " + authority.token});
  } else if (!config_.username.empty()) {
    authority.headers.push_back(
        {"Authorization", "Basic " + base64(config_.username + ":" + config_.password)});
  }
  add_impersonation(config_.impersonation, authority.headers);
  return authority;
}

bool Credentials::renew(const Authority& refused) {
  if (!config_.exec) return token_.refresh(refused.token, std::chrono::steady_clock::now());
  const bool is_old = credential_ && (credential_->token != refused.token ||
                                      (identity_ && identity_ != refused.identity));
  return is_old || run_plug_in().ok();
}

}  // namespace tj
