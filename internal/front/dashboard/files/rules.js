// The rules in force: look, try, compare, apply, go back.
import { h, put, show } from "./dom.js";
import { get, may, post } from "./api.js";
import { clock, plural, ruleLink } from "./words.js";
import { card, denied, empty, field, form, head, note, problems, tag } from "./parts.js";
import { applied, tried } from "./plan.js";
import edit from "./editor.js";

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
	else edit(editor, files, past.sets[0], again);
	show(history, past.sets.length ? past.sets.map((set, i) => h("div.note", {}, h("span.mono", {}, (set.revision || set.hash).slice(0, 16)), " ", set.in_force && !i ? tag("ok", "in force") : null,
		h("div.small", {}, "since " + clock(set.since) + (set.author ? ", by " + set.author : "") + (set.reason ? ": " + set.reason : "")),
		set.in_force ? null : h("button", { type: "button", onclick: () => back(editor, files, set, again).catch((p) => put(editor, note("bad", p.message))) }, "Compare, go back")))
		: empty("No other rules were in force since this process began.", "tidegate rules history"));
}

// back shows what it would mean to go back to a set, and does it.
async function back(place, files, set, done) {
	const was = await get("/rules/history/files", { hash: set.hash });
	const out = h("div"), layer = files.layers && files.layers[0];
	if (!layer || files.layers.length > 1) return put(place, empty("The rules have several layers; go back in one of them:", "tidegate rules rollback --to redis://HOST:6379 --to-revision REVISION --reason WHY"));
	const names = [...new Set([...Object.keys(layer.files), ...Object.keys(was.files)])].sort();
	const title = h("h3", { tabindex: "-1" }, "Back to " + (set.revision || set.hash).slice(0, 16));
	put(place, title, out,
		may("rule") && !layer.fixed ? form([field("Reason, for the audit log", "reason", { required: true, maxlength: 500 })], [h("button.main", {}, "Go back"), h("button", { type: "button", onclick: done }, "Stay")], async (v) => {
			await applied(await post("/rules/apply", { hash: files.hash, layer: layer.name, back_to: set.hash, reason: v.reason }), done);
		}) : layer.fixed ? note("", "They cannot be changed here: " + layer.fixed + ".") : denied("rule", "to go back"));
	await tried(out, files, layer, was.files, names.map((n) => [n, layer.files[n] || "", was.files[n] || ""]));
	title.focus(); // it may be far from the list of sets
}
