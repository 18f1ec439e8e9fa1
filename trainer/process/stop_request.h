// SIGTERM and SIGINT as a question that training asks after each step.
#pragma once

namespace tj::trainer {

/// From here on the first of them is remembered; a second ends the process at once, as it would
/// without us.
void catch_stop_signals();
/// The number of the remembered signal; 0: none.
int stop_signal();

}  // namespace tj::trainer
