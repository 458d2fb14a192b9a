// Alerts that are on: how many stands in the navigation, on the dashboard what needs somebody and is no job, and the page of alerts is
// fetched when others are on, and now and then for what moves on it.

import { children, parse } from "./morph.js";
import { again } from "./rows.js";
import { announce } from "./words.js";

const badge = document.querySelector("[data-alerts-on]");
const needs = document.querySelector("[data-needs-list]");
const page = document.querySelector("[data-alerts]");

function alerts({ on, html }) {
  if (badge) {
    badge.hidden = on === 0;
    badge.textContent = on;
  }
  if (needs) {
    const told = new Set([...needs.children].map((line) => line.dataset.need));
    children(needs, parse(html));
    for (const line of needs.children) if (!told.has(line.dataset.need)) announce(line.textContent.trim());
  }
  look();
}

const look = () => page && again(["alerts-now"]);

export const frames = { alerts };

export function start() {
  setInterval(() => document.hidden || look(), 5000);
}
