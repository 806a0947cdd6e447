// ELF_SANITIZED is defined in builds with sanitizers, whatever the compiler.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define ELF_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(undefined_behavior_sanitizer)
#define ELF_SANITIZED 1
#endif
#endif
