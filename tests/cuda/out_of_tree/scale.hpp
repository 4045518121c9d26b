// The kernel's argument, for the device and the host.
#pragma once

struct Scale {
    const float* x;
    float* y;
    int n;
    float factor;
};
