/* A driver of two GPUs, as libcuda.so.1 (and, with FAKE_NVML, as libnvidia-ml.so.1). */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifndef FAKE_NVML

int cuInit(unsigned flags) {
    return flags == 0 ? 0 : 1;
}
int cuDeviceGetCount(int* count) {
    return *count = 2, 0;
}
int cuDeviceGet(int* device, int ordinal) {
    return *device = 100 + ordinal, 0;
}
int cuDeviceGetName(char* name, int capacity, int device) {
    return snprintf(name, (size_t)capacity, device == 100 ? "NVIDIA GeForce RTX 3090" : "Tesla P40"), 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    const int first = device == 100;
    switch (attribute) {
        case 75:
            return *value = first ? 8 : 6, 0;
        case 76:
            return *value = first ? 6 : 1, 0;
        case 36:
            return *value = 9751000, 0;
        case 37:
            return *value = 384, 0;
        default:
            return 1;
    }
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
    return *bytes = device == 100 ? 25438126080u : 25636700160u, 0;
}
int cuDeviceGetPCIBusId(char* id, int capacity, int device) {
    return snprintf(id, (size_t)capacity, "0000:%02X:00.0", device), 0;
}

#else

static char first;
static int sessions;
int nvmlInit_v2(void) {
    return ++sessions, 0;
}
int fake_sessions(void) {
    return sessions;
}
int nvmlShutdown(void) {
    return 0;
}
/* Knows the first GPU only. */
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
    *device = &first;
    return strcmp(id, "0000:64:00.0") == 0 ? 0 : 6;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
    if (device != &first) return 2;
    memory[0] = 25769803776u;
    memory[1] = 20000000000u;
    memory[2] = 5769803776u;
    return 0;
}
int nvmlDeviceGetMaxPcieLinkGeneration(void* device, unsigned* generation) {
    return *generation = 4, device == &first ? 0 : 2;
}
int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* lanes) {
    return *lanes = 8, device == &first ? 0 : 2;
}

#endif
