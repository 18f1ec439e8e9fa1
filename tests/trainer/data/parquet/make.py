"""Makes the Parquet files of this folder, which are committed: tests need no pyarrow.

usage: PYTHONPATH=UNPACKED_WHEEL_OF_PYARROW python3 make.py

All but `mixed` hold the rows of rows(), the larger ones several times, in one of the ways in which Parquet may be written.
"""
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
COUNT = 60


def rows():
    """Some rows have no text, some an empty one; the test knows this by heart."""
    texts = []
    for number in range(COUNT):
        text = f"row {number}: " + "人工智能 and more words\n" * (number % 5) + "x" * (number * 7 % 31)
        texts.append(None if number % 7 == 3 else "" if number % 7 == 5 else text)
    return texts


def main():
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = rows()
    plain = {"use_dictionary": False}
    small_pages = {"data_page_size": 200, "write_batch_size": 4}

    def write(name, column, **options):
        table = pa.table({"id": pa.array(range(len(column)), pa.int64()), "text": column})
        pq.write_table(table, HERE / f"{name}.parquet", **options)

    write("snappy_dictionary", pa.array(texts), compression="snappy")
    write("zstd_pages_v2", pa.array(texts), compression="zstd", data_page_version="2.0", **plain, **small_pages)
    write("gzip_delta_length", pa.array(texts), compression="gzip", column_encoding={"text": "DELTA_LENGTH_BYTE_ARRAY"}, **plain,
          **small_pages)
    write("brotli_delta", pa.array(texts), compression="brotli", column_encoding={"text": "DELTA_BYTE_ARRAY"}, **plain)
    write("none_groups", pa.array(texts), compression="none", row_group_size=7, write_page_checksum=True, **plain, **small_pages)
    write("lz4_large_string", pa.array(texts, pa.large_string()), compression="lz4", row_group_size=25)
    write("zstd_categories", pa.array(texts).dictionary_encode(), compression="zstd", data_page_version="2.0", row_group_size=31)
    required = pa.schema([pa.field("id", pa.int64()), pa.field("text", pa.string(), nullable=False)])
    table = pa.table({"id": pa.array(range(COUNT), pa.int64()), "text": pa.array([text or "" for text in texts])}, schema=required)
    pq.write_table(table, HERE / "snappy_required.parquet", compression="snappy", **plain, **small_pages)
    write("zstd_large", pa.array(texts * 400), compression="zstd", compression_level=19, data_page_size=256 << 10, **plain)
    write("snappy_empty", pa.array([], pa.string()), compression="snappy")
    pq.write_table(pa.table({
        "id": pa.array([1, 2]), "tags": pa.array([["a"], []], pa.list_(pa.string())), "author": pa.array([{"name": "n"}, None]),
        "when": pa.array([0, 1], pa.timestamp("ms")), "raw": pa.array([b"\x00", b"\x01"]), "body": pa.array(["first", "second"]),
        "evil\nname" * 5: pa.array([1.5, 2])}), HERE / "mixed.parquet")


if __name__ == "__main__":
    main()
