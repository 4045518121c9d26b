/* An extension of a launch (tsr_launch.next): how many pages of the cache the step's sequences have, so that a kernel
 * which goes through them puts no more work on the queue than the step needs. */
#pragma once

#include <tessera/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_LAUNCH_PAGES "org.tessera.launch_pages/1"

typedef struct tsr_launch_pages {
    tsr_chain chain;
    /* On the host, [TSR_RANGE_COUNT]: the sequences that have rows of the range hold no more pages of TSR_PAGE_TOKENS
     * tokens than this, all together, with their new tokens; a page counts once for each of them. Like
     * tsr_launch.row_bounds it holds for all replays of a recording. */
    const int64_t* bounds;
} tsr_launch_pages;

#ifdef __cplusplus
}
#endif
