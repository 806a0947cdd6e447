#include "elf/app/tools.h"

int main(int argc, char** argv) {
  return elf::app::inspect(argc, argv);
}
