// The precompiled header of tests that see torch.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../src/pch.h"
