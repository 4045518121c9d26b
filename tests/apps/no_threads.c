// Preloaded into a process, lets it start at most THREADS_ALLOWED threads, as a limit of the system would.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef int (*create_function)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* context) {
    static atomic_int started;
    const char* allowed = getenv("THREADS_ALLOWED");
    if (allowed && atomic_fetch_add(&started, 1) >= atoi(allowed)) return EAGAIN;
    create_function create;
    *(void**)&create = dlsym(RTLD_NEXT, "pthread_create");
    return create(thread, attributes, start, context);
}
