// What a page does beyond its HTML. Everything works without it.
"use strict";
