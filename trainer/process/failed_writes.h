// Writes that the kernel would answer with a signal, which ends a process without a word.
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

/// From here on a write beyond the limit of file sizes (`ulimit -f`) is an error (EFBIG) with a
/// message, and no signal. Programs that this one starts inherit it.
void outlive_file_size_limits();

}  // namespace tj::trainer
