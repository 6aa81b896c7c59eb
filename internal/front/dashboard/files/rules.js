// The rules in force: look, try, compare, apply, go back.
import { h, put, show, say } from "./dom.js";
import { get, may, post } from "./api.js";
import { clock, number, plural, ruleLink } from "./words.js";
import { card, choice, denied, empty, field, form, head, note, problems, table, tag } from "./parts.js";

export default async function rules(main) {
	const [is, files, past] = await Promise.all([get("/rules"), get("/rules/files").catch((p) => p), get("/rules/history").catch(() => ({ sets: [] }))]);
	const editor = h("div"), history = h("div");
	const again = () => rules(main);
	put(main, head("Rules", h("p.quiet", {}, plural(is.rules.length, "rule") + (is.loaded_at ? ", in force since " + clock(is.loaded_at) : "")), is.hash ? h("p.quiet.mono", {}, is.hash.slice(0, 12)) : null),
		is.current ? null : [note("warn", "What is in the files does not load; those loaded before are in force."), problems(is.problems || [])],
		h("div.grid", {},
			card("w12", "All rules", is.rules.length ? h("p", {}, is.rules.map((name, i) => [i ? ", " : "", h("a", { href: ruleLink(name) }, name)])) : empty("There are no rules, so nothing is limited. Write some:", "tidegate init")),
			card("w8", "As they are written", editor), card("w4", "History", history)));
	if (files instanceof Error) show(editor, empty(files.message + " Write some:", "tidegate init"));
	else edit(editor, files, again);
	show(history, past.sets.length ? past.sets.map((set, i) => h("div.note", {}, h("span.mono", {}, (set.revision || set.hash).slice(0, 16)), " ", set.in_force && !i ? tag("ok", "in force") : null,
		h("div.small", {}, "since " + clock(set.since) + (set.author ? ", by " + set.author : "") + (set.reason ? ": " + set.reason : "")),
		set.in_force ? null : h("button", { type: "button", onclick: () => back(editor, files, set, again) }, "Compare, go back")))
		: empty("No other rules were in force since this process began.", "tidegate rules history"));
}

// edit shows the files of a layer. Whoever may can try and apply others.
function edit(place, files, done) {
	if (!files.layers.length) return put(place, empty("There are no rules yet.", "tidegate rules status"));
	const names = files.layers.flatMap((l, i) => Object.keys(l.files).sort().map((f) => [i + ":" + f, (files.layers.length > 1 ? l.name + ": " : "") + f]));
	const text = h("textarea", { name: "text", spellcheck: "false", autocapitalize: "off", "aria-label": "Text of the file" });
	const pick = choice("File", "file", names);
	const at = () => { const v = pick.querySelector("select").value, i = v.indexOf(":"); return [files.layers[Number(v.slice(0, i))], v.slice(i + 1)]; };
	const load = () => {
		const [layer, file] = at();
		text.value = layer.files[file];
		show(state, layer.fixed ? note("", "They cannot be changed here: " + layer.fixed + ".") : h("p.small.quiet", {}, "Changes reach " + layer.reaches + "."));
		go.disabled = true;
	};
	const state = h("div");
	const go = h("button.main", { value: "apply", disabled: true }, "Apply");
	const f = form([pick, h("label", {}, "Text", text), state, may("rule") ? field("Reason, for the audit log", "reason", { maxlength: 500 }) : null],
		[h("button", { value: "try" }, "Try"), may("rule") ? go : null, h("button", { type: "button", onclick: load }, "As it was")], async (v, pressed, out) => {
			const [layer, file] = at();
			const changed = { [file]: text.value };
			if (pressed === "apply") {
				if (!v.reason.trim()) throw new Error("Say why, for whoever looks at this later.");
				const made = await post("/rules/apply", { hash: files.hash, layer: layer.name, files: changed, reason: v.reason });
				await applied(out, made, done);
				return;
			}
			const ok = await tried(out, files, layer, { ...layer.files, ...changed }, [[file, layer.files[file], text.value]]);
			setTimeout(() => { go.disabled = !ok || Boolean(layer.fixed); });
		});
	text.addEventListener("input", () => { go.disabled = true; });
	pick.querySelector("select").addEventListener("change", load);
	put(place, f, may("rule") ? null : denied("rule", "to apply other rules"));
	load();
}

// tried shows what is wrong with rules, or what they would change. It returns whether they load.
async function tried(out, files, layer, all, pairs) {
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
		p.keys ? [h("h3", {}, "Live keys"), table("Live keys", [["Rule"], ["From"], ["To"], ["Keys", "n"], ["Newly refused", "n"], ["Freed", "n"]], p.keys.map((k) => [k.rule, k.was, k.now, number(k.keys), newly(k), number(k.freed || 0)]))] : null,
		p.unknown ? h("p.small.quiet", {}, "Not known: " + p.unknown + ".") : null];
}

async function applied(out, made, done) {
	const text = made.changed ? "In force: " + made.hash.slice(0, 12) + ", written to " + made.where + "." : "Written to " + made.where + "; it is not in force here yet.";
	await done();
	if (location.hash.startsWith("#/rules")) document.querySelector("#main > div").prepend(note("ok", text));
	say(text);
	scrollTo(0, 0);
}

// back shows what it would mean to go back to a set, and does it.
async function back(place, files, set, done) {
	const was = await get("/rules/history/files", { hash: set.hash });
	const out = h("div"), layer = files.layers && files.layers[0];
	if (!layer || files.layers.length > 1) return put(place, empty("The rules have several layers; go back in one of them:", "tidegate rules rollback --to redis://HOST:6379 --to-revision REVISION --reason WHY"));
	const names = [...new Set([...Object.keys(layer.files), ...Object.keys(was.files)])].sort();
	put(place, h("h3", {}, "Back to " + (set.revision || set.hash).slice(0, 16)), out,
		may("rule") && !layer.fixed ? form([field("Reason, for the audit log", "reason", { required: true, maxlength: 500 })], [h("button.main", {}, "Go back"), h("button", { type: "button", onclick: done }, "Stay")], async (v, _, o) => {
			await applied(o, await post("/rules/apply", { hash: files.hash, layer: layer.name, back_to: set.hash, reason: v.reason }), done);
		}) : layer.fixed ? note("", "They cannot be changed here: " + layer.fixed + ".") : denied("rule", "to go back"));
	await tried(out, files, layer, was.files, names.map((n) => [n, layer.files[n] || "", was.files[n] || ""]));
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
