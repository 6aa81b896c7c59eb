// Pieces that several pages have.
import { h, s, show, say } from "./dom.js";
import { me } from "./api.js";
import { rate, short, number, percent } from "./words.js";

export const head = (title, ...rest) => h("div.head", {}, h("h1", {}, title), rest);

export const card = (size, title, ...rest) => h("section.card." + size, { "aria-label": title }, h("h2", {}, title), rest);

// empty says in a sentence that there is nothing, and what to do next.
export function empty(text, command) {
	return h("p.empty", {}, text, command ? [" ", h("code", {}, command)] : null);
}

export const loading = () => h("p.quiet", {}, "Loading…");

export const tag = (kind, text) => h("span.tag" + (kind ? "." + kind : ""), {}, text);

export function note(kind, ...text) { return h("div.note" + (kind ? "." + kind : ""), { role: kind === "bad" ? "alert" : null }, text); }

// rowOf names the row that begins with a cell, so that it is known again when the rows have another order.
function rowOf(cell) {
	const first = [cell].flat()[0];
	return first instanceof Element ? first.getAttribute("href") || first.textContent : first;
}

// table makes one of rows of cells; columns are [name, class].
export function table(label, columns, rows, stack) {
	return h("div.scroll", { tabindex: "0", role: "group", "aria-label": label },
		h("table" + (stack ? ".stack" : ""), {},
			h("thead", {}, h("tr", {}, columns.map(([name, kind]) => h("th" + (kind ? "." + kind : ""), { scope: "col" }, name)))),
			h("tbody", {}, rows.map((cells) => h("tr", { "data-id": rowOf(cells[0]) }, cells.map((c, i) => h("td" + (columns[i][1] ? "." + columns[i][1] : ""), { "data-label": stack && columns[i][2] ? columns[i][2] : null }, c)))))));
}

// meter is a bar. It has the colour of refusals where it is one of refusals, and where nothing is left.
export function meter(share, label, kind) {
	const n = Math.max(0, Math.min(1, share));
	return h("span.meter" + (n >= 1 || kind === "refused" ? ".full" : ""), { role: "img", "aria-label": label || percent(n) + " used" }, h("i", { "width%": (100 * n).toFixed(1) }));
}

// icon of a verdict: a tick, or a mark.
export function icon(level) {
	const line = level === "ok" ? "M6.500 12.500l3.500 3.500 7.500-8" : "M12 6.500v7M12 17v.5";
	return s("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, s("circle", { cx: 12, cy: 12, r: 10.500, fill: "none", stroke: "currentColor", "stroke-width": 2 }),
		s("path", { d: line, fill: "none", stroke: "currentColor", "stroke-width": 2.250, "stroke-linecap": "round", "stroke-linejoin": "round" }));
}

// draw fills a box with what was admitted, with what was refused on top of it, and a line of what
// a candidate would refuse.
export function draw(box, traffic, would) {
	const { admitted, refused, step_seconds: step } = traffic;
	const w = Math.max(260, box.clientWidth), height = w < 480 ? 136 : 176, left = 40, right = 4, bottom = 22, top = 8;
	const n = admitted.length, points = 180;
	const all = admitted.map((a, i) => (a + refused[i]) / step), base = admitted.map((a) => a / step);
	const most = nice(Math.max(1, ...all, ...(would || []).map((v) => v / step)));
	const x = (i) => left + (w - left - right) * (i + points - n) / (points - 1);
	const y = (v) => top + (height - top - bottom) * (1 - v / most);
	const line = (values) => values.map((v, i) => x(i).toFixed(1) + " " + y(v).toFixed(1));
	const area = (upper, lower) => n < 2 ? "" : "M" + line(upper).join("L") + "L" + line(lower).reverse().join("L") + "Z";
	const sum = (list) => list.reduce((a, b) => a + b, 0);
	const grid = [0, 0.5, 1].map((f) => [
		s("line", { x1: left, x2: w - right, y1: y(f * most), y2: y(f * most) }),
		s("text", { x: left - 6, y: y(f * most) + 4, "text-anchor": "end" }, axis(f * most))]);
	const times = [[0, "15 min ago", "start"], [60, "10", "middle"], [120, "5", "middle"], [179, "now", "end"]].map(([i, text, anchor]) =>
		s("text", { x: left + (w - left - right) * i / (points - 1), y: height - 4, "text-anchor": anchor }, text));
	show(box, s("svg", { viewBox: "0 0 " + w + " " + height, width: w, height, class: "chart", role: "img",
		"aria-label": "Requests per second over 15 minutes: " + number(sum(admitted)) + " admitted, " + number(sum(refused)) + " refused, at most " + rate(Math.max(0, ...all)) + "." },
	grid, s("path", { class: "a", d: area(base, base.map(() => 0)) }), s("path", { class: "r", d: area(all, base) }),
	would && would.some((v) => v > 0) ? s("path", { class: "s", d: "M" + line(would.map((v) => v / step)).join("L") }) : null, times));
}

const axis = (v) => v >= 10 || v === 0 ? short(v) : v.toFixed(1).replace(/\.0$/, "");

// nice is the next round number.
function nice(v) {
	const unit = 10 ** Math.floor(Math.log10(v));
	return [1, 2, 5, 10].map((m) => m * unit).find((m) => m >= v);
}

// totals are the numbers above a chart; would is what a trial, a candidate or shadow, would refuse.
export function totals(traffic, would, trial) {
	const sum = (list) => list.reduce((a, b) => a + b, 0);
	const a = sum(traffic.admitted), r = sum(traffic.refused), last = traffic.admitted.length - 1;
	const now = last >= 0 ? (traffic.admitted[last] + traffic.refused[last]) / traffic.step_seconds : 0;
	return h("div.numbers", {},
		h("div", {}, h("b", { id: "admitted" }, short(a)), h("span.key", {}, "admitted")),
		h("div.refused", {}, h("b", { id: "refused" }, short(r)), h("span.key", {}, "refused, " + percent(a + r ? r / (a + r) : 0))),
		would && would.some((v) => v > 0) ? h("div.would", {}, h("b", {}, short(sum(would))), h("span.key", {}, "the " + trial + " would refuse")) : null,
		h("div", {}, h("b", {}, rate(now)), "now"));
}

// answered says of how many nodes a series is.
export function answered(traffic) {
	const text = traffic.of <= 1 ? "one node" : traffic.nodes + " of " + traffic.of + " nodes answered";
	return h("p.small.quiet", {}, "Last 15 minutes, ", text, traffic.missing ? ": missing " + traffic.missing.join("; ") : "", ".");
}

// denied says that the operator may not do something, and what to do.
export const denied = (role, what) => empty("Your role is " + me.role + ", and " + what + " needs " + role + ". Whoever keeps the file of admin.tokens can give it to you, or:", "tidegate audit --who " + me.name);

// form makes a form that runs f with its values; it shows the problem if that fails. A second press has to wait for the
// first, and no button is disabled meanwhile, as it would lose the focus.
export function form(fields, buttons, f, attributes) {
	const out = h("div", { tabindex: "-1" });
	const e = h("form", { ...attributes, onsubmit: async (event) => {
		event.preventDefault();
		if (e.ariaBusy) return;
		const values = Object.fromEntries(new FormData(e)), pressed = event.submitter;
		e.ariaBusy = "true";
		show(out);
		try { await f(values, pressed && pressed.value, out); } catch (p) { show(out, note("bad", p.message)); say(p.message); }
		e.ariaBusy = null;
	} }, fields, h("div.row", {}, buttons), out);
	return e;
}

export function field(label, name, attributes, kind) {
	return h("label", {}, label, h(kind || "input", { name, ...attributes }));
}

export function choice(label, name, options, attributes) {
	return h("label", {}, label, h("select", { name, ...attributes }, options.map(([value, text]) => h("option", { value }, text))));
}

// problems are mistakes in rules, each with its line and carets below.
export function problems(list) {
	return list.map((p) => {
		const indent = (p.source || "").length - (p.source || "").trimStart().length;
		const caret = " ".repeat(Math.max(0, p.col - 1 - indent)) + "^";
		return h("div.note." + (p.severity === "error" ? "bad" : "warn"), { role: p.severity === "error" ? "alert" : null },
			h("b", {}, [p.file, p.line, p.col].filter(Boolean).join(":") + ": " + p.severity + ": "), p.message,
			p.source ? h("pre", { class: "caret" }, p.source.trimStart() + "\n" + caret) : null, p.hint ? h("div", {}, p.hint) : null);
	});
}
