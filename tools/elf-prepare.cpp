#include "elf/app/tools.h"

int main(int argc, char** argv) {
  elf::app::leave(elf::app::prepare(argc, argv));
}
