// Wires what the page has. Everything here only makes better what works without it.

import * as alerts from "./alerts.js";
import * as clock from "./clock.js";
import * as forms from "./forms.js";
import * as keyboard from "./keyboard.js";
import * as live from "./live.js";
import * as log from "./log.js";
import * as mark from "./mark.js";
import * as notices from "./notices.js";
import * as rows from "./rows.js";
import * as theme from "./theme.js";
import * as toggle from "./toggle.js";
import * as zone from "./zone.js";

for (const part of [clock, zone, forms, keyboard, log, mark, notices, rows, alerts, theme, toggle, live]) part.start();
