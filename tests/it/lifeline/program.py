"""A program on a life line, told what to say by lines of JSON on its standard input. Each is answered by one line."""
import json
import os
import socket
import sys
import threading

lines = []


def read(number):
    """The next line of the watcher: its JSON, "end", or null after 4 s."""
    line, waits = lines[number]
    line.settimeout(4)
    while b"\n" not in waits:
        try:
            got = line.recv(65536)
        except TimeoutError:
            return None
        except OSError:
            return "end"
        if not got:
            return "end"
        waits.extend(got)
    text, _, rest = bytes(waits).partition(b"\n")
    waits[:] = rest
    return json.loads(text)


def send(number, text):
    try:
        lines[number][0].sendall(text)
    except OSError:
        pass


def in_child(what):
    child = os.fork()
    if child == 0:
        what()
        os._exit(0)
    os.waitpid(child, 0)


def threads(count):
    """Work that goes on in other threads, too."""
    for _ in range(count):
        threading.Thread(target=threading.Event().wait, daemon=True).start()


for told in sys.stdin:
    ask = json.loads(told)
    number = ask.get("line", 0)
    answer = None
    if "connect" in ask:
        line = socket.socket(socket.AF_UNIX)
        line.connect(ask["connect"])
        lines.append((line, bytearray()))
        answer = len(lines) - 1
    elif "say" in ask:
        send(number, json.dumps(ask["say"]).encode() + b"\n")
        answer = read(number)
    elif "raw" in ask:
        send(number, ask["raw"].encode() * ask.get("times", 1))
        answer = read(number) if ask.get("answer", True) else "sent"
    elif "child" in ask:
        in_child(lambda: send(number, json.dumps(ask["child"]).encode() + b"\n"))
        answer = read(number)
    elif "read" in ask:
        answer = read(number)
    elif "threads" in ask:
        threads(ask["threads"])
    elif "exec" in ask:
        os.set_inheritable(lines[number][0].fileno(), True)
        os.execvp(ask["exec"][0], ask["exec"])
    print(json.dumps(answer), flush=True)
