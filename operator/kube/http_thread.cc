#include "operator/kube/http_thread.h"

#include <cpprest/http_client.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <pplx/threadpool.h>
#include <stdlib.h>

#include <cstring>

namespace tj {

boost::asio::io_context& http_thread() {
  // An exception here means that the pool is there already, with the library's own 40 threads.
  static const bool started = [] {
    // The thread ends in a handler of exit(), after OpenSSL's own, and may free a certificate then:
    // with locks that were gone it span for ever.
    OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    crossplat::threadpool::initialize_with_threads(1);
    return true;
  }();
  static_cast<void>(started);
  return crossplat::threadpool::shared_instance().service();
}

void keep_system_authorities_out() {
  static const bool done = [] {
    const char* const nothing = "/nonexistent/only-the-cluster-is-trusted";
    return setenv("SSL_CERT_FILE", nothing, 1) == 0 && setenv("SSL_CERT_DIR", nothing, 1) == 0;
  }();
  static_cast<void>(done);
}

Error http_failure(const std::exception& failure, const std::string& tls_refusal,
                   const std::string& subject) {
  const auto* http = dynamic_cast<const web::http::http_exception*>(&failure);
  const int number = http == nullptr ? 0 : http->error_code().value();
  const std::string what = failure.what();
  const auto says = [&](const char* words) { return what.find(words) != std::string::npos; };
  Error error{Code::unavailable, what, subject, {}};

  if (says("SSL handshake")) {
    // The number is OpenSSL's, or the system's where the peer hung up.
    const char* reason = ERR_reason_error_string(static_cast<unsigned long>(number));
    if (reason == nullptr) reason = "the server ended it; perhaps it does not speak TLS";
    error.message = "TLS: " + (tls_refusal.empty() ? std::string("the handshake failed: ") + reason
                                                   : tls_refusal);
  } else if (says("Failed to connect")) {
    // The library reports a refused connection as EHOSTUNREACH.
    error.message = std::string("can't connect: ") +
                    (number == EHOSTUNREACH ? "connection refused, or no route to the host"
                                            : std::strerror(number));
  } else if (says("resolv")) {
    error.message = "the server's name can't be resolved";
  } else if (http != nullptr) {
    error.message = "the connection broke: " + what;
  } else {
    error.code = Code::internal;
  }
  return error;
}

}  // namespace tj
