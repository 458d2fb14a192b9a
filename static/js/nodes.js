// The page of nodes: it is fetched again when a node came, went or changed, and now and then for the heartbeats.

import { again } from "./rows.js";

const page = document.querySelector("[data-nodes]");

export function changed() {
  if (page) again(["nodes"]);
}

export function start() {
  if (page) setInterval(() => document.hidden || again(["nodes"]), 5000);
}
