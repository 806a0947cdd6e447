// The precompiled header of tests that do not see torch.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../src/core_pch.h"
