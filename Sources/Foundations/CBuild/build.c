#include "CBuild.h"

#ifndef SEALBELL_COMMIT
#define SEALBELL_COMMIT ""
#endif

const char *sealbell_commit(void) { return SEALBELL_COMMIT; }
