// trainer-engine, with all systems of the registry.
#include "trainer/train/engine.h"
#include "trainer/workloads/registry.h"

int main(int argc, char** argv) { tj::trainer::engine_main(argc, argv, tj::trainer::workloads()); }
