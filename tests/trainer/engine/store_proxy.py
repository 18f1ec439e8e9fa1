"""Stands between a rank and the store of rank 0, and lets one thread of that rank ask too late why all must end."""

import contextlib
import socket
import threading

WATCHDOG = b"/watch/"  # keys that only the watchdog's connection asks for
CAUSE = b"/lost"  # the key of the one sentence on why the ranks can't go on


class StoreProxy:
    """What connections other than the watchdog's ask about the cause gets no answer before the store itself has closed."""

    def __init__(self, port):
        self.port_of_store = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.held = threading.Event()  # somebody has asked in vain
        self.sockets = [self.listener]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.join, args=(client,), daemon=True).start()

    def join(self, client):
        try:
            store = socket.create_connection(("127.0.0.1", self.port_of_store))
        except OSError:
            return client.close()  # it does not listen yet: the rank asks again
        self.sockets += [client, store]
        threading.Thread(target=self.carry_questions, args=(client, store), daemon=True).start()
        with contextlib.suppress(OSError):
            while answer := store.recv(65536):
                client.sendall(answer)
        client.close()
        return None

    def carry_questions(self, client, store):
        is_watchdog = False
        with contextlib.suppress(OSError):
            while question := client.recv(65536):
                is_watchdog = is_watchdog or WATCHDOG in question
                if CAUSE in question and not is_watchdog:
                    return self.held.set()
                store.sendall(question)
        store.close()
        return None

    def close(self):
        for each in self.sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
