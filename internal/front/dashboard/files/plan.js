// What other rules would change, and that they were put in force.
import { h, show, say } from "./dom.js";
import { post } from "./api.js";
import { number, plural } from "./words.js";
import { note, problems, table } from "./parts.js";

// tried shows what is wrong with rules, or what they would change. It returns whether they load.
export async function tried(out, files, layer, all, pairs) {
	const plan = await post("/rules/plan", { ...(files.layers.length > 1 ? { layer: layer.name } : {}), ...(layer.main ? { main: layer.main } : {}), files: all });
	const same = pairs.every(([, a, b]) => a === b);
	show(out, plan.valid ? note(same ? "" : "ok", same ? "This is what is in force." : "These rules load. Nothing was changed yet.") : note("bad", "These rules do not load, and nothing was changed."),
		problems(plan.problems), same ? null : pairs.map(([file, a, b]) => a === b ? null : [h("h3", {}, file), diff(a, b)]),
		plan.valid && !same ? planned(plan) : null);
	say(plan.valid ? "The rules load." : "The rules do not load.");
	return plan.valid && !same;
}

function planned(p) {
	const newly = (k) => k.newly_refused_at_least === k.newly_refused_at_most ? number(k.newly_refused_at_most) : number(k.newly_refused_at_least) + "–" + number(k.newly_refused_at_most);
	return [p.added ? h("p", {}, "New: " + p.added.join(", ")) : null, p.removed ? h("p", {}, "Gone: " + p.removed.join(", ")) : null,
		p.counters ? [h("h3", {}, "Counters"), h("ul", {}, p.counters.map((t) => h("li", {}, t)))] : null,
		p.keys ? [h("h3", {}, "Live keys"), table("Live keys", [["Rule"], ["Keys", "n", "keys"], ["From", "wide", "from"], ["To", "wide", "to"], ["Newly refused", "n", "newly refused"], ["Freed", "n", "freed"]], p.keys.map((k) => [k.rule, number(k.keys), k.was, k.now, newly(k), number(k.freed || 0)]), true)] : null,
		p.unknown ? h("p.small.quiet", {}, "Not known: " + p.unknown + ".") : null];
}

// applied shows the rules again, and what has become of them.
export async function applied(made, done) {
	const text = made.changed ? "In force: " + made.hash.slice(0, 12) + ", written to " + made.where + "." : "Written to " + made.where + "; it is not in force here yet.";
	await done();
	if (!location.hash.startsWith("#/rules")) return;
	const told = note("ok", text);
	told.tabIndex = -1; // what had the focus is gone
	document.querySelector("#main > div").prepend(told);
	say(text);
	scrollTo(0, 0);
	told.focus({ preventScroll: true });
}

// diff shows the lines of two texts that differ, with some around them.
export function diff(a, b) {
	const x = a.split("\n"), y = b.split("\n");
	let from = 0, endX = x.length, endY = y.length;
	while (from < endX && from < endY && x[from] === y[from]) from++;
	while (endX > from && endY > from && x[endX - 1] === y[endY - 1]) { endX--; endY--; }
	const n = endX - from, m = endY - from, lines = [];
	if (n * m > 4e6) return h("pre.diff", {}, h("span.gap", {}, plural(n, "line") + " become " + plural(m, "line")));
	const best = Array.from({ length: n + 1 }, () => new Uint32Array(m + 1));
	for (let i = n - 1; i >= 0; i--) for (let j = m - 1; j >= 0; j--) best[i][j] = x[from + i] === y[from + j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
	for (let k = Math.max(0, from - 3); k < from; k++) lines.push(["", x[k]]);
	let i = 0, j = 0;
	while (i < n || j < m) {
		if (i < n && j < m && x[from + i] === y[from + j]) { lines.push(["", x[from + i]]); i++; j++; }
		else if (i < n && (j === m || best[i + 1][j] >= best[i][j + 1])) lines.push(["del", x[from + i++]]);
		else lines.push(["add", y[from + j++]]);
	}
	for (let k = endX; k < Math.min(x.length, endX + 3); k++) lines.push(["", x[k]]);
	return h("pre.diff", { tabindex: "0", role: "group", "aria-label": "What differs" }, lines.map(([kind, text]) => h("span" + (kind ? "." + kind : ""), {}, (kind === "add" ? "+ " : kind === "del" ? "− " : "  ") + text)));
}
