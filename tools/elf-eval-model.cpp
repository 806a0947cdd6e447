#include "elf/app/tools.h"

int main(int argc, char** argv) {
  return elf::app::eval_model(argc, argv);
}
