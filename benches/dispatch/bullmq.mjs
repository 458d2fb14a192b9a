// `bullmq.mjs URL IN_FLIGHT TASKS`: claim + done of that many no-op jobs through one BullMQ Worker; prints JSON.
//
// As its page shows it: a Queue, a Worker with `concurrency`, `removeOnComplete`. A processor that returns at once
// leaves as many jobs in flight as the concurrency says: each fetches the next when it completes. Putting is not counted.

import { createRequire } from "node:module";

// Modules are found beside node_modules, which stands in the working directory and not beside this file.
const require = createRequire(`${process.cwd()}/`);
const { Queue, Worker } = require("bullmq");
const { default: Redis } = require("ioredis");

const [url, inFlight, tasks] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const address = new URL(url);
const connection = { host: address.hostname, port: Number(address.port), db: 0, maxRetriesPerRequest: null };
const asking = new Redis(connection);
const cpu = async () => {
    const info = await asking.info("cpu");
    const of = (name) => Number(info.match(new RegExp(`^${name}:(.*)$`, "m"))[1]);
    return of("used_cpu_user") + of("used_cpu_sys");
};

const name = `bench-${inFlight}`;
const queue = new Queue(name, { connection, defaultJobOptions: { removeOnComplete: true } });
for (let put = 0; put < tasks; put += 1000) {
    const size = Math.min(1000, tasks - put);
    await queue.addBulk(Array.from({ length: size }, (_, n) => ({ name: "task", data: { n: put + n } })));
}
let most = 0;
const looking = setInterval(async () => {
    most = Math.max(most, await asking.llen(`bull:${name}:active`));
}, 100);
const worker = new Worker(name, async () => {}, { connection, concurrency: inFlight, autorun: false });
let done = 0;
const finished = new Promise((resolve, reject) => {
    worker.on("completed", () => ++done === tasks && resolve());
    worker.on("failed", (_, error) => reject(error));
    worker.on("error", reject);
});
await worker.waitUntilReady();
const [before, begun] = [await cpu(), performance.now()];
worker.run().catch(() => {});
await finished;
const [seconds, after] = [(performance.now() - begun) / 1000, await cpu()];
clearInterval(looking);
await worker.close();
await queue.obliterate({ force: true });
await queue.close();
asking.disconnect();
console.log(JSON.stringify({ seconds, cpu: after - before, tasks: done, in_flight: most }));
process.exit(0);
