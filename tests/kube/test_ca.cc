#include "tests/kube/test_ca.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <functional>

#include "contract/result.h"

namespace tj {
namespace {

std::string pem_text(const std::function<int(BIO*)>& write) {
  BIO* const out = BIO_new(BIO_s_mem());
  TJ_CHECK(write(out) == 1, "OpenSSL can't write PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(out, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free_all(out);
  return text;
}

void add_extension(X509* certificate, int kind, const std::string& value) {
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  TJ_CHECK(extension != nullptr, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

X509* unsigned_certificate(const CertificateSpec& spec, EVP_PKEY* key) {
  static long serial = 1;
  X509* const certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial++);
  X509_gmtime_adj(X509_getm_notBefore(certificate), spec.valid_from_seconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate), spec.valid_to_seconds);
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(spec.common_name.c_str()), -1,
                             -1, 0);
  return certificate;
}

std::string pem_of(X509* certificate) {
  return pem_text([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

}  // namespace

struct TestCa::Handles {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
};

TestCa::TestCa(const std::string& common_name) : handles_(std::make_unique<Handles>()) {
  handles_->key = EVP_EC_gen("P-256");
  handles_->certificate = unsigned_certificate({.common_name = common_name}, handles_->key);
  X509_set_issuer_name(handles_->certificate, X509_get_subject_name(handles_->certificate));
  add_extension(handles_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(handles_->certificate, handles_->key, EVP_sha256());
}

TestCa::~TestCa() {
  X509_free(handles_->certificate);
  EVP_PKEY_free(handles_->key);
}

std::string TestCa::pem() const { return pem_of(handles_->certificate); }

Issued TestCa::issue(const CertificateSpec& spec) const {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const certificate = unsigned_certificate(spec, key);
  X509_set_issuer_name(certificate, X509_get_subject_name(handles_->certificate));
  add_extension(certificate, NID_subject_alt_name, spec.names);
  X509_sign(certificate, handles_->key, EVP_sha256());
  Issued issued{.certificate_pem = pem_of(certificate),
                .key_pem = pem_text([&](BIO* out) {
                  return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
                })};
  X509_free(certificate);
  EVP_PKEY_free(key);
  return issued;
}

}  // namespace tj
