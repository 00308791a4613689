#include <sys/types.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <arpa/nameser.h>
#include <netdb.h>
#include <resolv.h>
#include <string.h>

// Asks for a domain's mail exchangers with a resolver state of its own, so that threads do not meet. Every
// name server is asked once, for `seconds`.
//
// `port`: 0 for the system's name servers; else the one at that port of 127.0.0.1, behind one at `before` unless
// that is 0.
//
// Returns the answer's length in bytes, which may be more than fits; 0 when the domain or its exchangers are
// known not to exist; -1 when that cannot be told.
static inline int sealbell_query_mx(
    const char *domain, unsigned char *answer, int capacity, int seconds, unsigned short port,
    unsigned short before)
{
    struct __res_state state;
    memset(&state, 0, sizeof state);
    if (res_ninit(&state) != 0) return -1;
    state.retrans = seconds;
    state.retry = 1;
    unsigned short ports[2] = {before != 0 ? before : port, port};
    if (port != 0) state.nscount = before != 0 ? 2 : 1;
    for (int index = 0; port != 0 && index < state.nscount; index++) {
        memset(&state.nsaddr_list[index], 0, sizeof state.nsaddr_list[index]);
        state.nsaddr_list[index].sin_family = AF_INET;
        state.nsaddr_list[index].sin_port = htons(ports[index]);
        state.nsaddr_list[index].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    int length = res_nquery(&state, domain, ns_c_in, ns_t_mx, answer, capacity);
    int why = state.res_h_errno;
    res_nclose(&state);
    if (length > 0) return length;
    return why == HOST_NOT_FOUND || why == NO_DATA ? 0 : -1;
}

// Bounds what the C library asks of name servers in the calling thread from now on: each once, for `seconds`,
// for the name as it stands and none of the local domains behind it. The library would ask twice for five
// seconds, and again for every domain of its search list.
//
// `port`: as above.
static inline void sealbell_bound_lookups(int seconds, unsigned short port)
{
    // Reads the system's settings anew where they have changed.
    if (res_init() != 0) return;
    _res.retrans = seconds;
    _res.retry = 1;
    _res.options &= ~(RES_DNSRCH | RES_DEFNAMES);
    if (port == 0) return;
    _res.nscount = 1;
    memset(&_res.nsaddr_list[0], 0, sizeof _res.nsaddr_list[0]);
    _res.nsaddr_list[0].sin_family = AF_INET;
    _res.nsaddr_list[0].sin_port = htons(port);
    _res.nsaddr_list[0].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}
