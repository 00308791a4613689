#ifndef SEALBELL_CPOSTGRES_H
#define SEALBELL_CPOSTGRES_H

// PostgreSQL's client library, libpq, as far as the store uses it: the calls of its fifth binary interface
// under their own names (PostgreSQL 15, chapter 34). They are ours and pass everything on to the library,
// which is loaded when it is first asked for (postgres.c): a relay on SQLite needs neither libpq nor the
// fourteen libraries that libpq alone brings.

#include <stddef.h>

typedef struct pg_conn PGconn;
typedef struct pg_result PGresult;
typedef unsigned int Oid;
typedef void (*PQnoticeReceiver)(void *context, const PGresult *result);

// Numbers are the binary interface's and never change; what the store does not tell apart is left out.
typedef enum {
    CONNECTION_OK = 0,
    CONNECTION_BAD = 1,
    CONNECTION_STARTED = 2,
    CONNECTION_NEEDED = 8
} ConnStatusType;

typedef enum {
    PGRES_POLLING_FAILED = 0,
    PGRES_POLLING_READING = 1,
    PGRES_POLLING_WRITING = 2,
    PGRES_POLLING_OK = 3
} PostgresPollingStatusType;

typedef enum {
    PGRES_COMMAND_OK = 1,
    PGRES_TUPLES_OK = 2,
    PGRES_PIPELINE_SYNC = 10,
    PGRES_PIPELINE_ABORTED = 11
} ExecStatusType;

typedef enum { PQTRANS_IDLE = 0 } PGTransactionStatusType;

typedef enum { PQERRORS_SQLSTATE = 3 } PGVerbosity;

typedef struct {
    char *keyword;
    char *envvar;
    char *compiled;
    char *val;
    char *label;
    char *dispchar;
    int dispsize;
} PQconninfoOption;

// Hidden: the library's own calls must not lead back here.
#pragma GCC visibility push(hidden)

/// Whether the library is there, with all that is called below: libpq 14 or newer. The first call loads it;
/// any thread may call. Where it says 0, `PQconninfoParse` and `PQconnectStartParams` return NULL, and nothing
/// else may be called, for want of what they return.
int sealbell_postgres_is_there(void);

PQconninfoOption *PQconninfoParse(const char *text, char **message);
void PQconninfoFree(PQconninfoOption *options);
void PQfreemem(void *block);

PGconn *PQconnectStartParams(const char *const *names, const char *const *values, int expands);
PostgresPollingStatusType PQconnectPoll(PGconn *connection);
void PQfinish(PGconn *connection);
int PQsocket(const PGconn *connection);
ConnStatusType PQstatus(const PGconn *connection);
PGTransactionStatusType PQtransactionStatus(const PGconn *connection);
int PQconnectionNeedsPassword(const PGconn *connection);
char *PQerrorMessage(const PGconn *connection);
PGVerbosity PQsetErrorVerbosity(PGconn *connection, PGVerbosity verbosity);
PQnoticeReceiver PQsetNoticeReceiver(PGconn *connection, PQnoticeReceiver receiver, void *context);
int PQsetnonblocking(PGconn *connection, int isNonblocking);
int PQenterPipelineMode(PGconn *connection);
int PQpipelineSync(PGconn *connection);
int PQflush(PGconn *connection);
int PQconsumeInput(PGconn *connection);
int PQisBusy(PGconn *connection);

int PQsendPrepare(PGconn *connection, const char *name, const char *query, int count, const Oid *types);
int PQsendQueryPrepared(
    PGconn *connection, const char *name, int count, const char *const *values, const int *lengths,
    const int *formats, int resultFormat);
int PQsendQueryParams(
    PGconn *connection, const char *query, int count, const Oid *types, const char *const *values,
    const int *lengths, const int *formats, int resultFormat);

PGresult *PQgetResult(PGconn *connection);
ExecStatusType PQresultStatus(const PGresult *result);
char *PQresultErrorField(const PGresult *result, int code);
char *PQcmdTuples(PGresult *result);
int PQntuples(const PGresult *result);
int PQgetisnull(const PGresult *result, int row, int column);
int PQgetlength(const PGresult *result, int row, int column);
char *PQgetvalue(const PGresult *result, int row, int column);
void PQclear(PGresult *result);

#pragma GCC visibility pop

#endif
