// What an expression throws: kind and message of an elf::Error.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "elf/base/error.h"

namespace elf::test {

// The message of the usage error (exit code 2) that `action` throws; fails the test when it throws none or
// another kind.
template <class Action>
std::string usage_message(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace elf::test
