// The text of the rules, to be changed.
import { h, put, show, say } from "./dom.js";
import { get, may, me, post } from "./api.js";
import { clock } from "./words.js";
import { choice, denied, empty, field, form, note } from "./parts.js";
import { applied, diff, tried } from "./plan.js";
import { edited } from "./ends.js";

// drafts are texts that were not applied yet, by operator, layer and file. They outlive a look at another page, the end of
// a session, and rules of others: each knows the files that it was made from.
const drafts = new Map(); // {hash, files, text, reason}

// edit shows the files of a layer. Whoever may can try and apply others. newest is the set that came in force last.
export default function edit(place, files, newest, done) {
	if (!files.layers.length) return put(place, empty("There are no rules yet.", "tidegate rules status"));
	const names = files.layers.flatMap((l, i) => Object.keys(l.files).sort().map((f) => [i + ":" + f, (files.layers.length > 1 ? l.name + ": " : "") + f]));
	const text = h("textarea", { name: "text", spellcheck: "false", autocapitalize: "off", "aria-label": "Text of the file" });
	const pick = choice("File", "file", names), picked = pick.querySelector("select");
	const at = () => { const v = picked.value, i = v.indexOf(":"); return [files.layers[Number(v.slice(0, i))], v.slice(i + 1)]; };
	const id = () => { const [layer, file] = at(); return JSON.stringify([me.name, layer.name, file]); };
	const meanwhile = h("div", { id: "meanwhile", tabindex: "-1" }), state = h("div");
	const why = may("rule") ? field("Reason, for the audit log", "reason", { maxlength: 500 }) : null, reason = why && why.querySelector("input");
	const go = h("button.main", { value: "apply", disabled: true }, "Apply");

	let is = ""; // the text, with line ends that the textarea does not show

	const load = () => {
		const [layer, file] = at(), mine = drafts.get(id());
		text.value = is = mine ? mine.text : layer.files[file];
		if (mine && reason) reason.value = mine.reason;
		show(meanwhile, mine ? kept(mine, files.hash, layer, newest) : null);
		show(state, Object.entries(layer.unshown || {}).map(([name, why]) => h("p.small.quiet", {}, name + " is not shown and cannot be changed here: " + why + ".")), layer.fixed ? note("", "They cannot be changed here: " + layer.fixed + ".") : h("p.small.quiet", {}, "Changes reach " + layer.reaches + "."));
		go.disabled = true;
	};
	const remember = () => {
		const [layer, file] = at(), mine = drafts.get(id());
		if (is === layer.files[file]) drafts.delete(id());
		else drafts.set(id(), { hash: files.hash, files: layer.files, ...mine, text: is, reason: reason ? reason.value : "" });
	};
	const f = form([pick, h("label", {}, "Text", text), state, why],
		[h("button", { value: "try" }, "Try"), reason ? go : null, h("button", { type: "button", onclick: () => { drafts.delete(id()); load(); } }, "Discard")], async (v, pressed, out) => {
			const [layer, file] = at(), changed = { [file]: is };
			const overtaken = async () => (await get("/rules/files")).hash !== files.hash;
			if (pressed !== "apply") {
				if (await overtaken()) return second(done);
				go.disabled = !await tried(out, files, layer, { ...layer.files, ...changed }, [[file, layer.files[file], is]]) || Boolean(layer.fixed);
				return;
			}
			if (!v.reason.trim()) throw new Error("Say why, for whoever looks at this later.");
			let made;
			try {
				made = await post("/rules/apply", { hash: files.hash, layer: layer.name, files: changed, reason: v.reason });
			} catch (p) {
				if (p.status === 409 && await overtaken()) return second(done);
				throw p;
			}
			drafts.delete(id());
			await applied(made, done);
		});
	text.addEventListener("input", () => { go.disabled = true; is = edited(is, text.value); remember(); });
	if (reason) reason.addEventListener("input", remember);
	const begun = names.find(([value]) => { picked.value = value; return drafts.has(id()); });
	picked.value = (begun || names[0])[0];
	picked.addEventListener("change", load);
	put(place, meanwhile, f, reason ? null : denied("rule", "to apply other rules"));
	load();
}

// kept tells of a draft: that it is one, and what others have put in force since it was begun.
function kept(mine, hash, layer, newest) {
	if (mine.hash === hash) return note("", "This is the text that you began. It is not in force: Try shows what it would change, Discard drops it.");
	const names = [...new Set([...Object.keys(mine.files), ...Object.keys(layer.files)])].sort().filter((n) => mine.files[n] !== layer.files[n]);
	return [
		note("warn", h("b", {}, "Other rules came in force while you were writing"), newest ? ", at " + clock(newest.since) + (newest.author ? ", by " + newest.author : "") + (newest.reason ? ": " + newest.reason : "") : "",
			". Nothing of yours was applied, and your text is below as you left it. Put into it what you want to keep of theirs; Try compares it with the rules that are in force now."),
		names.map((n) => [h("h3", {}, "What they changed in " + n), diff(mine.files[n] || "", layer.files[n] || "")]),
	];
}

// second shows what others have put in force, to somebody who comes after them.
async function second(done) {
	await done();
	say("Other rules came in force while you were writing. Nothing of yours was applied, and your text is kept.");
	const told = document.getElementById("meanwhile");
	if (!told) return; // they have gone to another page
	told.focus({ preventScroll: true });
	told.scrollIntoView({ block: "start" });
}
