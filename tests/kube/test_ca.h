// Certificates for the tests, made in memory.
#pragma once
#include <memory>
#include <string>

namespace tj {

struct CertificateSpec {
  std::string common_name = "test-server";
  std::string names = "IP:127.0.0.1";  // as in openssl.cnf's subjectAltName
  long valid_from_seconds = -3600;     // from now
  long valid_to_seconds = 3600;
};
struct Issued {
  std::string certificate_pem;
  std::string key_pem;
};

class TestCa {
 public:
  explicit TestCa(const std::string& common_name);
  ~TestCa();
  std::string pem() const;
  Issued issue(const CertificateSpec& spec = {}) const;

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

}  // namespace tj
