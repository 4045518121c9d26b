#pragma once

#include "core/base/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

namespace tessera::gguf::test {

// `work` throws Error with `code` and a message that holds all of `parts`.
inline void expect_error(tsr_code code, std::initializer_list<std::string> parts, auto&& work) {
    try {
        work();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        for (const std::string& part : parts) EXPECT_THAT(error.what(), testing::HasSubstr(part));
        return;
    }
    ADD_FAILURE() << "no error; expected one that says: " << *parts.begin();
}

}  // namespace tessera::gguf::test
