// The subcommands of tj: each adds itself to the program's options, and when it is the one that
// was asked for, it runs inside parse() and says what tj exits with. One command, one file; main.cc
// lists them in the order of the help.
#pragma once
#include "cli/exit.h"

namespace CLI {
class App;
}

namespace tj {

void add_check(CLI::App& app, int& exit_code);
void add_convert(CLI::App& app, int& exit_code);
void add_launch(CLI::App& app, int& exit_code);
void add_slurm(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_serve(CLI::App& app, int& exit_code);
void add_ui(CLI::App& app, int& exit_code);
void add_logs(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_submit(CLI::App& app, int& exit_code);
void add_validate(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_status(CLI::App& app, int& exit_code);
void add_top(CLI::App& app, int& exit_code);
void add_events(CLI::App& app, int& exit_code);
void add_suspend(CLI::App& app, int& exit_code);
void add_resume(CLI::App& app, int& exit_code);
void add_restart(CLI::App& app, int& exit_code);
void add_scale(CLI::App& app, int& exit_code);
void add_delete(CLI::App& app, int& exit_code);
void add_wait(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);
void add_man(CLI::App& app, int& exit_code);
void add_exec(CLI::App& app, int& exit_code);
void add_port_forward(CLI::App& app, int& exit_code);
void add_cp(CLI::App& app, int& exit_code);

}  // namespace tj
