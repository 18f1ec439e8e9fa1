// The one thread on which cpprestsdk runs, and what its exceptions mean. Private to
// rest_kube_api.cc.
#pragma once
#include <boost/asio/io_context.hpp>
#include <exception>
#include <string>

#include "contract/result.h"

namespace tj {

/// Starts the thread on first use; it lives as long as the process.
boost::asio::io_context& http_thread();

/// The library loads the system's whole CA bundle for each connection, about 130 ms of processor
/// time and a megabyte each, before we replace it with our own store. Only these variables keep it
/// from that, so they are pointed at nothing.
void keep_system_authorities_out();

/// What a failed connection, handshake or transfer means in words. `tls_refusal` is why the
/// server's certificate was not accepted, or "".
Error http_failure(const std::exception& failure, const std::string& tls_refusal,
                   const std::string& subject);

}  // namespace tj
