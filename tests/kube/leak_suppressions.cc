// What LeakSanitizer may overlook in the client's tests. CTest gives each test a process of its
// own; where that ends while a continuation still waits in cpprestsdk's thread pool, the library
// never frees it. All tests in one process, where the pool goes on, report nothing.
extern "C" {
// Called by LeakSanitizer's runtime, by this name.
const char* __lsan_default_suppressions();
const char* __lsan_default_suppressions() { return "leak:libcpprest.so\nleak:pplx::\n"; }
}
