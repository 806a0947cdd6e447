// What an expression throws: kind and message of an elf::Error.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "elf/base/error.h"

namespace elf::test {

// The message of the Error that `action` throws; fails the test when it throws none or one of another kind.
template <class Action>
std::string error_message(ErrorKind kind, Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

template <class Action>
std::string usage_message(Action action) {
  return error_message(ErrorKind::kUsage, action);
}

}  // namespace elf::test
