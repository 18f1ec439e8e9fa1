"""The scalars in TensorBoard's event files, for tests that have no TensorBoard; tests/interop/events.py holds it to that one."""
import struct


def records(data):
    """Each is a length, its checksum, the bytes, and their checksum."""
    at = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        yield data[at + 12:at + 12 + length]
        at += 12 + length + 4


def varint(data, at):
    value, shift = 0, 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(message):
    """(number, value) of a message in protobuf's encoding; what has a length, and fixed numbers, as bytes."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(message, at)
        else:
            size, at = varint(message, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = message[at:at + size], at + size
        yield key >> 3, value


def values_of_file(path):
    """(step, tag, fields of the value) of all summaries in a file (tensorboard/compat/proto)."""
    for record in records(path.read_bytes()):
        event = dict(fields(record))
        for number, value in fields(event.get(5, b"")):
            if number == 1:
                entry = dict(fields(value))
                yield event.get(2, 0), entry[1].decode(), entry


def values(folder):
    """Of all files in a folder, in their order."""
    for path in sorted(folder.iterdir()):
        yield from values_of_file(path)


def scalars_among(found, tag):
    return [(step, struct.unpack("<f", entry[2])[0]) for step, name, entry in found if name == tag and 2 in entry]


def scalars(folder, tag):
    """(step, value) of each, as float32."""
    return scalars_among(values(folder), tag)


def scalars_of_file(path, tag):
    return scalars_among(values_of_file(path), tag)


def pictures(folder, tag):
    """(step, PNG) of each."""
    return [(step, dict(fields(entry[4]))[4]) for step, name, entry in values(folder) if name == tag and 4 in entry]
