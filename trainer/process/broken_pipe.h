// What becomes of a write to somebody who is gone.
#pragma once

namespace tj::trainer {

/// From here on a write to a socket whose other end is gone is an error (EPIPE) and no signal.
/// Gloo, and libuv under the rendezvous' store, write so that the kernel sends SIGPIPE, which ended
/// a rank without a word where another one had been killed. They count on a process that ignores
/// it, as Python's does.
void outlive_broken_sockets();

/// After a write to standard output or error that failed, with its errno: where nobody reads any
/// more the process ends by SIGPIPE as any program of a pipeline does, unless who started it wants
/// that signal ignored.
void end_where_nobody_reads(int error_number);

}  // namespace tj::trainer
