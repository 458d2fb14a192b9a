// `redlock.mjs URL NAME TTL_MS CMD...`: a command under a lock of redlock, renewed by itself.
//
// As its page shows it: `using(resources, duration, async (signal) => ...)`, which extends the lock and aborts the
// signal when that fails; the abort ends the command. SIGTERM ends it, too, and the block then releases the lock.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { once } from "node:events";

// Modules are found beside node_modules, which stands in the working directory and not beside this file.
const require = createRequire(`${process.cwd()}/`);
const { default: Redis } = require("ioredis");
const { default: Redlock } = require("redlock");

const [url, name, ttl, ...command] = process.argv.slice(2);
const client = new Redis(url);
const locks = new Redlock([client], { retryCount: -1 });
let child;
process.on("SIGTERM", () => (child ? child.kill() : process.exit(0)));
await locks.using([name], Number(ttl), async (signal) => {
    child = spawn(command[0], command.slice(1), { stdio: "inherit" });
    signal.addEventListener("abort", () => child.kill("SIGKILL"));
    await once(child, "exit");
});
client.disconnect();
