#!/usr/bin/env python3
"""Writes the seeds of http_fuzzer: make_http_corpus.py FOLDER."""
import pathlib
import sys

POST = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = POST + "Transfer-Encoding: chunked\r\n\r\n"
NEXT = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
SEEDS = {
    "get": NEXT,
    "get-1.0": "GET /health HTTP/1.0\r\n\r\n",
    "absolute": "GET http://localhost/props?x=1?2 HTTP/1.1\r\nHost: localhost\r\nConnection: close, te\r\n\r\n",
    "empty-lines": "\r\n\r\n" + NEXT,
    "length": POST + "Content-Length: 5\r\n\r\nhello" + NEXT,
    "length-0": POST + "Content-Length: 0\r\n\r\n" + NEXT,
    "length-twice": POST + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "length-list": POST + "Content-Length: 5, 5\r\n\r\nhello",
    "length-large": POST + "Content-Length: 18446744073709551615\r\n\r\n",
    "chunks": CHUNKED + "5\r\nhello\r\n00a\r\n0123456789\r\n0\r\n\r\n" + NEXT,
    "extensions": CHUNKED + "5;name=value;other=\"quo\\\"ted\"\r\nhello\r\n1 ; x\r\n!\r\n0;last\r\n\r\n" + NEXT,
    "trailers": CHUNKED + "1\r\na\r\n0\r\nX-Sum: 3\r\nX-Other: a b\r\n\r\n" + NEXT,
    "trailer-length": CHUNKED + "0\r\nContent-Length: 5\r\n\r\nhello",
    "trailer-coding": CHUNKED + "0\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "chunk-large": CHUNKED + "ffffffffffffffff\r\n",
    "chunk-long": CHUNKED + "12d\r\n" + "x" * 301,
    "chunk-bare": CHUNKED + "5\nhello\n0\n\n",
    "coding-gzip": POST + "Transfer-Encoding: gzip\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "coding-list": POST + "Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "coding-twice": POST + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "coding-length": POST + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "length-coding": POST + "Content-Length: 5\r\nTransfer-Encoding: xchunked\r\n\r\nhello",
    "coding-1.0": "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "folded": POST + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "blank-name": POST + "Content-Length : 5\r\n\r\nhello",
    "expect": POST + "Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    "tls": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "http2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "many": NEXT * 4 + POST + "Content-Length: 3\r\n\r\nabc" + CHUNKED + "0\r\n\r\n",
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(exist_ok=True)
    for number, (name, text) in enumerate(SEEDS.items()):
        (folder / f"seed-{name}").write_bytes(bytes([number]) + text.encode("latin-1"))


if __name__ == "__main__":
    main()
