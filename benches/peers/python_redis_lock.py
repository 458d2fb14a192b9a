"""`python_redis_lock.py URL NAME TTL_SECONDS CMD...`: a command under a lock of python-redis-lock, renewed by itself.

As its page shows it: `with redis_lock.Lock(client, name, expire=..., auto_renewal=True)`. SIGTERM ends the command,
waits for it and leaves the block, which releases the lock.
"""

import signal
import subprocess
import sys

import redis
import redis_lock

url, name, ttl, *command = sys.argv[1:]
child = None


def terminate(*_):
    if child is None:
        sys.exit(0)
    child.terminate()


signal.signal(signal.SIGTERM, terminate)
with redis_lock.Lock(redis.StrictRedis.from_url(url), name, expire=int(ttl), auto_renewal=True):
    child = subprocess.Popen(command)
    child.wait()
