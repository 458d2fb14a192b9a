// Wires what the page has. Everything here only makes better what works without it.

import * as clock from "./clock.js";
import * as copy from "./copy.js";
import * as keyboard from "./keyboard.js";
import * as live from "./live.js";
import * as log from "./log.js";
import * as mark from "./mark.js";
import * as nodes from "./nodes.js";
import * as passwords from "./passwords.js";
import * as theme from "./theme.js";
import * as toggle from "./toggle.js";

for (const part of [clock, copy, keyboard, log, mark, nodes, passwords, theme, toggle, live]) part.start();
