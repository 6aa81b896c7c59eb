// Where somebody stands, and what can be done about it.
import { h, put, show, say } from "./dom.js";
import { get, may, post } from "./api.js";
import { asText, clock, keyLink, number, ruleLink, span, until } from "./words.js";
import { card, choice, denied, empty, field, form, head, meter, note, table, tag } from "./parts.js";

export const parseAs = (query) => Object.fromEntries(query.getAll("as").map((pair) => { const i = pair.indexOf("="); return [pair.slice(0, i), pair.slice(i + 1)]; }));

export default async function key(main, query) {
	const as = parseAs(query), rule = query.get("rule") || "";
	if (!Object.keys(as).length) return guess(main, query.get("value") || "");
	const counters = h("div"), orders = h("div"), actions = h("div");
	put(main, head(asText(as)), h("div.grid", {}, card("w12", "Counters", counters), card("w5", "Overrides and bans", orders), card("w7", "Do something", actions)));
	let rules = [];
	const load = async () => {
		const found = await get("/keys", [...Object.entries(as).map(([n, v]) => ["as", n + "=" + v])]);
		rules = [...new Set(found.counters.map((c) => c.rule))];
		show(counters, (found.unnamed || []).map((u) => note("warn", "The rules have no identity " + u.name + (u.near ? "; did you mean " + u.near + "?" : "."))),
			found.counters.length ? standing(found.counters, found.measures) : empty("No rule counts by them. Which ones a request would meet:", "tidegate explain --as " + asText(as).split(" ").join(" --as ") + " GET /"));
		show(orders, (found.measures || []).length ? found.measures.map((m) => measure(m, load)) : empty("No override and no ban holds for them.", "tidegate measures --search " + Object.values(as)[0]));
	};
	await load();
	show(actions, may("operate") ? doing(as, rule, rules, load) : denied("operate", "to change anything for them"));
	const timer = setInterval(() => { if (!document.hidden && !orders.contains(document.activeElement)) load().catch(() => {}); }, 3000);
	return () => clearInterval(timer);
}

// standing shows counters. Whoever is banned is refused whatever they say.
export function standing(list, measures) {
	const banned = (rule) => (measures || []).some((m) => m.kind === "ban" && (!m.rule || m.rule === rule));
	return table("Counters", [["Rule"], ["Limit"], ["Used", "wide"], ["Left", "n", "left"], ["State", "n"]], list.map((c) => {
		const used = c.capacity ? (c.capacity - c.remaining) / c.capacity : 0;
		return [
			[h("a", { href: ruleLink(c.rule) }, c.rule), c.role === "decides" ? null : [" ", tag(c.role === "tries" ? "warn" : "", c.role)]], c.limit,
			c.unknown ? c.unknown : meter(used), c.unknown ? "–" : number(c.remaining) + " of " + number(c.capacity),
			banned(c.rule) ? tag("bad", "banned") : c.unknown ? tag("warn", "unknown") : c.ok ? tag("ok", "admitted") : tag("bad", "refused" + (c.retry_after_seconds ? " for " + span(c.retry_after_seconds) : "")),
		];
	}), true);
}

function measure(m, done) {
	const out = h("div");
	return h("div.note", {}, tag(m.kind === "ban" ? "bad" : "", m.kind), " ", m.limits ? m.limits.join(", ") : "", m.rule ? " under " + m.rule : m.kind === "ban" ? "from everything" : "", ", ", m.until ? "ends in " + until(m.until) : "until it is ended",
		h("div.small", {}, m.reason + " – " + m.by + ", " + clock(m.at)),
		may("operate") ? form([field("Reason to end it", "reason", { required: true, maxlength: 500 })], [h("button", {}, "End it now")], async (v) => {
			await post("/measures/end", { id: m.id, reason: v.reason });
			say("Ended.");
			for (const e of document.querySelectorAll(".act .note.ok")) e.remove(); // it is not so any more
			await done();
		}) : null, out);
}

const lasting = [["1m", "1 minute"], ["15m", "15 minutes"], ["1h", "1 hour"], ["4h", "4 hours"], ["1d", "1 day"], ["7d", "7 days"], ["", "until it is ended"]];
const long = () => {
	const c = choice("For", "for", lasting);
	c.querySelector("select").value = "1h";
	return c;
};
const reason = () => field("Reason, for the audit log", "reason", { required: true, maxlength: 500, placeholder: "import until noon, asked by Ann" });
const rulesChoice = (rules, rule, any) => {
	const c = choice("Rule", "rule", [...(any ? [["", "all rules"]] : []), ...rules.map((r) => [r, r])]);
	if (rule && rules.includes(rule)) c.querySelector("select").value = rule;
	return c;
};

// doing has the actions, one at a time. Each shows its effect first.
function doing(as, rule, rules, done) {
	const place = h("div");
	const actions = {
		Override: () => act("Override", [h("div.row", {}, rulesChoice(rules, rule), field("Limits instead", "limits", { required: true, placeholder: "100/minute, or unlimited" }), long()), reason()],
			(v) => ["/measures", { kind: "override", as, rule: v.rule, limits: v.limits.split(",").map((t) => t.trim()).filter(Boolean), for: v.for, reason: v.reason }], done),
		Ban: () => act("Ban", [h("div.row", {}, rulesChoice(rules, "", true), long(), field("They are told", "message", { placeholder: "nothing" })), reason()],
			(v) => ["/measures", { kind: "ban", as, rule: v.rule, for: v.for, message: v.message, reason: v.reason }], done, true),
		Reset: () => act("Reset", [h("div.row", {}, rulesChoice(rules, rule, true)), reason()], (v) => ["/keys/reset", { as, rule: v.rule, reason: v.reason }], done),
		Refund: () => act("Refund", [h("div.row", {}, rulesChoice(rules, rule, true), field("Events", "events", { type: "number", min: 1, required: true, value: 10 })), reason()],
			(v) => ["/keys/refund", { as, rule: v.rule, events: Number(v.events), reason: v.reason }], done),
	};
	const buttons = Object.keys(actions).filter((name) => rules.length || name === "Ban").map((name) => h("button", { type: "button", "aria-pressed": "false", onclick: (e) => {
		for (const b of e.target.parentNode.children) b.setAttribute("aria-pressed", b === e.target);
		place.replaceChildren(actions[name]());
		place.querySelector("select, input").focus();
	} }, name));
	return [h("div.row", {}, buttons), h("p.small.quiet", {}, "Nothing is done before you have seen what it does."), place];
}

// act is a form whose first press shows the effect, and whose second has it.
function act(name, fields, order, done, danger) {
	let agreed = ""; // what the effect was shown of
	const go = h("button." + (danger ? "danger" : "main"), { value: "do", disabled: true }, name + " now");
	const f = form(fields, [h("button", { value: "look" }, "Show effect"), go], async (values, pressed, out) => {
		const [path, body] = order(values);
		const text = JSON.stringify(body);
		if (pressed !== "do" || text !== agreed) {
			const effect = await post(path, { ...body, preview: true });
			agreed = text;
			go.disabled = false;
			show(out, previewed(effect));
			say("This is the effect. Press " + name + " now to have it.");
			setTimeout(() => { go.disabled = false; go.focus(); });
			return;
		}
		const effect = await post(path, body);
		agreed = "";
		show(out, note("ok", name + " is done" + (effect.holds ? ": it " + effect.holds.replace(/^it /, "") : "") + "."));
		say(name + " is done.");
		await done();
		setTimeout(() => { go.disabled = true; });
	}, { class: "act" });
	f.addEventListener("input", () => { go.disabled = true; });
	return f;
}

function previewed(e) {
	if (!e.measure) {
		const used = e.counters.filter((c) => c.was_used);
		return [h("h3", {}, "Effect"), e.counters.some((c) => c.refunded) ? h("p", {}, "Gives back " + e.counters.map((c) => number(c.refunded || 0) + " under " + c.rule).join(", ") + ".")
			: h("p", {}, used.length ? "Forgets what these have counted:" : "Nothing is counted for them, so nothing changes."), standing(used.length ? used : e.counters)];
	}
	return [h("h3", {}, "Effect"),
		h("p", {}, e.measure.kind === "ban" ? "Every request of theirs" + (e.measure.rule ? " that " + e.measure.rule + " is for" : "") + " is refused" : "They get " + e.measure.limits.join(", ") + " under " + e.measure.rule,
			e.measure.until ? " until " + clock(e.measure.until) : " until it is ended", ". It ", e.holds, "."),
		e.replaces ? note("warn", "It takes the place of: " + (e.replaces.limits || [e.replaces.kind]).join(", ") + " by " + e.replaces.by + " (" + e.replaces.reason + ").") : null,
		e.counters.length ? [h("h3", {}, "Now"), standing(e.counters)] : null, e.then && e.then.length ? [h("h3", {}, "Then"), standing(e.then)] : null];
}

// guess asks which identity a value is of.
async function guess(main, value) {
	const o = await get("/overview");
	const list = h("div");
	const names = o.identities || [];
	put(main, head(value), h("div.grid", {}, card("w6", "As what are they counted?", names.length ? h("ul", {}, names.map((n) => h("li", {}, h("a", { href: keyLink({ [n]: value }) }, n + "=" + value))))
		: empty("There are no rules, so nobody is counted. Write some:", "tidegate init")), card("w6", "Offenders with that in their name", list)));
	const { lists } = await get("/offenders", { search: value, top: 10, minutes: 10 });
	const seen = new Map();
	const { person } = await import("./rule.js");
	for (const l of lists) for (const e of l.entries) seen.set(JSON.stringify(e.subject), [e.subject, l.rule]);
	show(list, seen.size ? h("ul", {}, [...seen.values()].map(([subject, rule]) => h("li", {}, person(subject, rule), h("span.quiet", {}, " under " + rule)))) : empty("Nobody is listed. By name:", "tidegate keys get --as user=" + value));
}
