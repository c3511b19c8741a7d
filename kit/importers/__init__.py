"""Facts from outside the kit: recorded captures and iteration traces, read whole or refused."""
