// Nothing in it is called by name: see counters.c.
