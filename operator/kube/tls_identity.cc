#include "operator/kube/tls_identity.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <functional>
#include <utility>
#include <vector>

#include "operator/kube/server_url.h"

namespace tj {
namespace {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;

Bio bio_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// Never asks at a terminal: an encrypted key is refused.
int no_password(char*, int, int, void*) { return 0; }

std::vector<Certificate> read_certificates(const std::string& pem) {
  std::vector<Certificate> certificates;
  const Bio bio = bio_of(pem);
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, no_password, nullptr)) {
    certificates.emplace_back(certificate);
  }
  ERR_clear_error();  // the end of the text is an error to OpenSSL
  return certificates;
}

Key read_key(const std::string& pem) {
  const Bio bio = bio_of(pem);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  return key;
}

std::string text_of(const std::function<void(BIO*)>& print) {
  const Bio bio(BIO_new(BIO_s_mem()));
  print(bio.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

std::string subject_of(const X509* certificate) {
  return text_of([&](BIO* out) {
    X509_NAME_print_ex(out, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  });
}

std::string time_text(const ASN1_TIME* time) {
  return text_of([&](BIO* out) { ASN1_TIME_print(out, time); });
}

/// "DNS:localhost, IP Address:127.0.0.1": whom the certificate is for.
std::string names_of(const X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (!names) return "no name at all";
  std::string text;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    if (i > 0) text += ", ";
    text +=
        text_of([&](BIO* out) { GENERAL_NAME_print(out, sk_GENERAL_NAME_value(names.get(), i)); });
  }
  return text;
}

bool is_address(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

/// The host of "https://host:port/path".
std::string host_of(const std::string& server) {
  const Result<ServerUrl> url = parse_server_url(server);
  return url ? url->host : server;
}

/// The library's own defaults as compiled in; the process' SSL_CERT_FILE is not looked at here.
void trust_system(X509_STORE* store) {
  X509_STORE_load_locations(store, X509_get_default_cert_file(), nullptr);
  X509_STORE_load_locations(store, nullptr, X509_get_default_cert_dir());
  ERR_clear_error();
}

}  // namespace

struct TlsIdentity::Handles {
  Store trusted;
  std::vector<Certificate> chain;
  Key key;
};

Result<void> check_ca(const std::string& pem, const std::string& source) {
  if (pem.empty() || !read_certificates(pem).empty()) return {};
  return Error{Code::invalid, "holds no PEM certificate", source, {}};
}

Result<void> check_client_identity(const ClientIdentity& identity) {
  const auto certificates = read_certificates(identity.certificate_pem);
  if (certificates.empty()) {
    return Error{Code::invalid, "holds no PEM certificate", identity.certificate_source, {}};
  }
  const Key key = read_key(identity.key_pem);
  if (!key) {
    return Error{
        Code::invalid, "holds no PEM private key, or an encrypted one", identity.key_source, {}};
  }
  const bool pair = X509_check_private_key(certificates.front().get(), key.get()) == 1;
  ERR_clear_error();
  if (pair) return {};
  return Error{Code::invalid,
               "is not the key of the certificate in " + identity.certificate_source,
               identity.key_source,
               {}};
}

TlsIdentity::TlsIdentity() : handles_(std::make_unique<Handles>()) {}
TlsIdentity::~TlsIdentity() = default;

Result<std::shared_ptr<TlsIdentity>> TlsIdentity::load(const KubeConfig& config) {
  if (Result<void> ca = check_ca(config.ca_pem, config.ca_source); !ca) return ca.error();
  if (!config.client_certificate_pem.empty()) {
    const Result<void> pair =
        check_client_identity({.certificate_pem = config.client_certificate_pem,
                               .certificate_source = config.source,
                               .key_pem = config.client_key_pem,
                               .key_source = config.source});
    if (!pair) return pair.error();
  }
  std::shared_ptr<TlsIdentity> identity(new TlsIdentity);
  Handles& handles = *identity->handles_;
  handles.trusted.reset(X509_STORE_new());
  for (const Certificate& ca : read_certificates(config.ca_pem)) {
    X509_STORE_add_cert(handles.trusted.get(), ca.get());
  }
  if (config.ca_pem.empty() && !config.insecure_skip_tls_verify)
    trust_system(handles.trusted.get());
  handles.chain = read_certificates(config.client_certificate_pem);
  if (!config.client_key_pem.empty()) handles.key = read_key(config.client_key_pem);
  identity->host_ =
      config.tls_server_name.empty() ? host_of(config.server) : config.tls_server_name;
  identity->trusts_anyone_ = config.insecure_skip_tls_verify;
  identity->trusted_ = config.ca_pem.empty() ? "the system's authorities" : config.ca_source;
  return identity;
}

void TlsIdentity::apply(ssl_ctx_st* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  X509_STORE_up_ref(handles_->trusted.get());
  SSL_CTX_set_cert_store(context, handles_->trusted.get());
  SSL_CTX_set_cert_verify_callback(context, &TlsIdentity::verify, this);
  if (handles_->chain.empty()) return;
  SSL_CTX_use_certificate(context, handles_->chain.front().get());
  SSL_CTX_use_PrivateKey(context, handles_->key.get());
  for (std::size_t i = 1; i < handles_->chain.size(); ++i) {
    SSL_CTX_add1_chain_cert(context, handles_->chain[i].get());
  }
}

int TlsIdentity::verify(x509_store_ctx_st* store, void* self) {
  TlsIdentity& identity = *static_cast<TlsIdentity*>(self);
  if (identity.trusts_anyone_) {
    X509_STORE_CTX_set_error(store, X509_V_OK);
    return 1;
  }
  X509_VERIFY_PARAM* const param = X509_STORE_CTX_get0_param(store);
  if (is_address(identity.host_)) {
    X509_VERIFY_PARAM_set1_ip_asc(param, identity.host_.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(param, identity.host_.c_str(), identity.host_.size());
  }
  const int accepted = X509_verify_cert(store);
  if (accepted == 1) return accepted;

  const int error = X509_STORE_CTX_get_error(store);
  const X509* const certificate = X509_STORE_CTX_get0_cert(store);
  std::string why = X509_verify_cert_error_string(error);
  if (error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID) {
    why += " (valid from " + time_text(X509_get0_notBefore(certificate)) + " to " +
           time_text(X509_get0_notAfter(certificate)) + ")";
  } else if (error == X509_V_OK || error == X509_V_ERR_HOSTNAME_MISMATCH ||
             error == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    why = "it is for " + names_of(certificate) + ", not for " + identity.host_;
  } else {
    why += "; trusted are " + identity.trusted_;
  }
  identity.refusal_ =
      "the server's certificate (" + subject_of(certificate) + ") is not accepted: " + why;
  return accepted;
}

std::string TlsIdentity::take_refusal() { return std::exchange(refusal_, {}); }

}  // namespace tj
