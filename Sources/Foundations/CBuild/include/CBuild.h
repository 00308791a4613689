#ifndef SEALBELL_CBUILD_H
#define SEALBELL_CBUILD_H

/// The commit that this program was built from, as hexadecimal digits; empty where the build was not told.
///
/// C, because this file alone is compiled anew when the commit is another one: Package.swift takes it from
/// SEALBELL_COMMIT.
const char *sealbell_commit(void);

#endif
