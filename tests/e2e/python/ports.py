"""Ports of this machine that are kept for the servers of a test."""

import socket


class Ports:
    """Ports that no other process gets when it takes any free port.

    The sockets do not listen: a server that sets SO_REUSEADDR may take its port,
    as often as it is started.
    """

    def __init__(self):
        self._sockets = []

    def take(self):
        """Returns one more."""
        try:
            self._sockets.append(self._bound(socket.AF_INET6))
        except OSError:  # a kernel may lack IPv6
            self._sockets.append(self._bound(socket.AF_INET))
        return self._sockets[-1].getsockname()[1]

    def address(self):
        return f"127.0.0.1:{self.take()}"

    def close(self):
        while self._sockets:
            self._sockets.pop().close()

    @staticmethod
    def _bound(family):
        bound = socket.socket(family)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:  # holds the port of IPv4, too
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            bound.bind(("", 0))
        except OSError:
            bound.close()
            raise
        return bound
