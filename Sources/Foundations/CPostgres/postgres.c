// libpq, loaded when a database is first named. Linked, it brought fourteen more libraries into every relay
// (two for TLS, LDAP, and what these need): 4.3 MiB of resident memory, and their share of a start's time and
// of what may have a fault.
#include "CPostgres.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#ifndef SEALBELL_LIBPQ
#if defined(__APPLE__)
// Homebrew keeps it apart.
#define SEALBELL_LIBPQ \
    "libpq.5.dylib", "/opt/homebrew/opt/libpq/lib/libpq.5.dylib", "/usr/local/opt/libpq/lib/libpq.5.dylib"
#else
#define SEALBELL_LIBPQ "libpq.so.5"
#endif
#endif

// Each call: what it returns, its name, its parameters, and what is passed on.
#define EACH(GIVES, VOID) \
    GIVES(PostgresPollingStatusType, PQconnectPoll, (PGconn *c), (c)) \
    GIVES(int, PQsocket, (const PGconn *c), (c)) \
    GIVES(ConnStatusType, PQstatus, (const PGconn *c), (c)) \
    GIVES(PGTransactionStatusType, PQtransactionStatus, (const PGconn *c), (c)) \
    GIVES(int, PQconnectionNeedsPassword, (const PGconn *c), (c)) \
    GIVES(char *, PQerrorMessage, (const PGconn *c), (c)) \
    GIVES(PGVerbosity, PQsetErrorVerbosity, (PGconn * c, PGVerbosity v), (c, v)) \
    GIVES(PQnoticeReceiver, PQsetNoticeReceiver, (PGconn * c, PQnoticeReceiver r, void *x), (c, r, x)) \
    GIVES(int, PQsetnonblocking, (PGconn * c, int is), (c, is)) \
    GIVES(int, PQenterPipelineMode, (PGconn * c), (c)) \
    GIVES(int, PQpipelineSync, (PGconn * c), (c)) \
    GIVES(int, PQflush, (PGconn * c), (c)) \
    GIVES(int, PQconsumeInput, (PGconn * c), (c)) \
    GIVES(int, PQisBusy, (PGconn * c), (c)) \
    GIVES(int, PQsendPrepare, (PGconn * c, const char *name, const char *query, int n, const Oid *types), \
          (c, name, query, n, types)) \
    GIVES(int, PQsendQueryPrepared, \
          (PGconn * c, const char *name, int n, const char *const *values, const int *lengths, \
           const int *formats, int result), \
          (c, name, n, values, lengths, formats, result)) \
    GIVES(int, PQsendQueryParams, \
          (PGconn * c, const char *query, int n, const Oid *types, const char *const *values, \
           const int *lengths, const int *formats, int result), \
          (c, query, n, types, values, lengths, formats, result)) \
    GIVES(PGresult *, PQgetResult, (PGconn * c), (c)) \
    GIVES(ExecStatusType, PQresultStatus, (const PGresult *r), (r)) \
    GIVES(char *, PQresultErrorField, (const PGresult *r, int code), (r, code)) \
    GIVES(char *, PQcmdTuples, (PGresult * r), (r)) \
    GIVES(int, PQntuples, (const PGresult *r), (r)) \
    GIVES(int, PQgetisnull, (const PGresult *r, int row, int column), (r, row, column)) \
    GIVES(int, PQgetlength, (const PGresult *r, int row, int column), (r, row, column)) \
    GIVES(char *, PQgetvalue, (const PGresult *r, int row, int column), (r, row, column)) \
    VOID(PQfinish, (PGconn * c), (c)) \
    VOID(PQclear, (PGresult * r), (r)) \
    VOID(PQconninfoFree, (PQconninfoOption * options), (options)) \
    VOID(PQfreemem, (void *block), (block))

#define FIELD(type, name, parameters, values) type(*name) parameters;
#define VOID_FIELD(name, parameters, values) void(*name) parameters;
static struct {
    EACH(FIELD, VOID_FIELD)
    PQconninfoOption *(*PQconninfoParse)(const char *text, char **message);
    PGconn *(*PQconnectStartParams)(const char *const *names, const char *const *values, int expands);
} libpq;
static int is_there = 0;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// POSIX promises that a function's address fits; C knows no such conversion.
static int find(void *library, const char *name, void *field) {
    void *found = dlsym(library, name);
    memcpy(field, &found, sizeof found);
    return found != NULL;
}

static void load(void) {
    static const char *const names[] = {SEALBELL_LIBPQ};
    void *library = NULL;
    for (size_t index = 0; library == NULL && index < sizeof names / sizeof names[0]; index++)
        library = dlopen(names[index], RTLD_NOW | RTLD_LOCAL);
    // It is never unloaded: libraries behind it keep threads and exit handlers.
    if (library == NULL) return;
    int found = 1;
#define FIND(type, name, parameters, values) found &= find(library, #name, &libpq.name);
#define VOID_FIND(name, parameters, values) found &= find(library, #name, &libpq.name);
    EACH(FIND, VOID_FIND)
    found &= find(library, "PQconninfoParse", &libpq.PQconninfoParse);
    found &= find(library, "PQconnectStartParams", &libpq.PQconnectStartParams);
    is_there = found;
}

int sealbell_postgres_is_there(void) { return pthread_once(&once, load) == 0 && is_there; }

PQconninfoOption *PQconninfoParse(const char *text, char **message) {
    *message = NULL;
    return sealbell_postgres_is_there() ? libpq.PQconninfoParse(text, message) : NULL;
}

PGconn *PQconnectStartParams(const char *const *names, const char *const *values, int expands) {
    return sealbell_postgres_is_there() ? libpq.PQconnectStartParams(names, values, expands) : NULL;
}

#define CALL(type, name, parameters, values) \
    type name parameters { return libpq.name values; }
#define VOID_CALL(name, parameters, values) \
    void name parameters { libpq.name values; }
EACH(CALL, VOID_CALL)
