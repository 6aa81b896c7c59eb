// Where somebody stands, and what can be done about it.
import { h, keep, put, show, say } from "./dom.js";
import { again, get, may, post } from "./api.js";
import { asText, clock, keyLink, number, ruleLink, span, until } from "./words.js";
import { card, choice, denied, empty, field, form, head, meter, note, table, tag } from "./parts.js";

export const parseAs = (query) => Object.fromEntries(query.getAll("as").map((pair) => { const i = pair.indexOf("="); return [pair.slice(0, i), pair.slice(i + 1)]; }));

export default async function key(main, query, trouble) {
	const as = parseAs(query), rule = query.get("rule") || "";
	if (!Object.keys(as).length) return guess(main, query.get("value") || "");
	const counters = h("div"), orders = h("div", { tabindex: "-1" }), actions = h("div");
	put(main, head(asText(as)), h("div.grid", {}, card("w12", "Counters", counters), card("w5", "Overrides and bans", orders), card("w7", "Do something", actions)));
	let stands = []; // their counters
	const none = empty("No override and no ban holds for them.", "tidegate measures --search " + Object.values(as)[0]);
	let notes = new Map(); // of measures, by their IDs: what somebody types into one stays
	const load = async () => {
		const found = await get("/keys", [...Object.entries(as).map(([n, v]) => ["as", n + "=" + v])]);
		stands = found.counters;
		show(counters, (found.unnamed || []).map((u) => note("warn", "The rules have no identity " + u.name + (u.near ? "; did you mean " + u.near + "?" : "."))),
			found.counters.length ? standing(found.counters, found.measures) : empty("No rule counts by them. Which ones a request would meet:", "tidegate explain --as " + asText(as).split(" ").join(" --as ") + " GET /"));
		notes = new Map((found.measures || []).map((m) => [m.id, notes.get(m.id) || measure(m.id, ended)]));
		for (const m of found.measures || []) notes.get(m.id).tell(m);
		keep(orders, notes.size ? [...notes.values()].map((n) => n.place) : [none]);
	};
	const ended = async () => {
		for (const e of actions.querySelectorAll(".note.ok")) e.remove(); // it is not so any more
		await load();
		orders.focus(); // what had the focus is gone
	};
	await load();
	show(actions, may("operate") ? doing(as, rule, () => stands, load) : denied("operate", "to change anything for them"));
	return again(load, 3000, trouble);
}

// standing shows counters. Whoever is banned is refused whatever they say.
export function standing(list, measures) {
	const banned = (rule) => (measures || []).some((m) => m.kind === "ban" && (!m.rule || m.rule === rule));
	return table("Counters", [["Rule"], ["Limit"], ["Used", "wide"], ["Left", "n", "left"], ["State", "n"]], list.map((c) => {
		const used = c.capacity ? (c.capacity - c.remaining) / c.capacity : 0;
		return [
			[h("a", { href: ruleLink(c.rule) }, c.rule), c.role === "decides" ? null : [" ", tag(c.role === "tries" ? "warn" : "", c.role === "tries" ? "not enforced" : c.role)]], c.limit,
			c.unknown ? c.unknown : meter(used), c.unknown ? "–" : number(c.remaining) + " of " + number(c.capacity),
			banned(c.rule) ? tag("bad", "banned") : c.unknown ? tag("warn", "unknown") : state(c),
		];
	}), true);
}

// state is what becomes of the next request. A candidate and a shadow only count what they would do.
function state(c) {
	const wait = c.retry_after_seconds ? " for " + span(c.retry_after_seconds) : "";
	if (c.role === "tries") return c.ok ? tag("", "would pass") : tag("warn", "would be refused" + wait);
	return c.ok ? tag("ok", "admitted") : tag("bad", "refused" + wait);
}

// measure is a place that tells of an override or a ban, and lets operators end it.
function measure(id, done) {
	const text = h("div");
	const place = h("div.note", {}, text, may("operate") ? form([field("Reason to end it", "reason", { required: true, maxlength: 500 })], [h("button", {}, "End it now")], async (v) => {
		await post("/measures/end", { id, reason: v.reason });
		say("Ended.");
		await done();
	}) : null);
	const tell = (m) => show(text, tag(m.kind === "ban" ? "bad" : "", m.kind), " ", m.limits ? m.limits.join(", ") : "", m.rule ? " under " + m.rule : m.kind === "ban" ? "from everything" : "", ", ", m.until ? "ends in " + until(m.until) : "until it is ended",
		h("div.small", {}, m.reason + " – " + m.by + ", " + clock(m.at)));
	return { place, tell };
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

// more is the limits of a rule, so many times; "" if that cannot be said in a few words.
function more(counters, rule, times) {
	const parts = counters.filter((c) => c.rule === rule && c.role === "decides").map((c) => c.limit.match(/^(\d+)(\/\S+| slots)/));
	return parts.every(Boolean) ? [...new Set(parts.map(([, n, rest]) => n * times + rest))].join(", ") : "";
}

// offers are limits that are often meant: a press fills them in.
function offers(counters) {
	const fill = (text) => (e) => {
		const f = e.target.form, limits = f.elements.limits;
		limits.value = typeof text === "string" ? text : more(counters(), f.elements.rule.value, text);
		limits.dispatchEvent(new Event("input", { bubbles: true }));
		if (!limits.value) limits.focus();
	};
	return h("div.row.offers", { role: "group", "aria-label": "Limits that are often meant" }, h("span.small.quiet", {}, "Let them have"),
		[["twice as much", 2], ["10 times", 10], ["no limit", "unlimited"]].map(([name, text]) => h("button", { type: "button", onclick: fill(text) }, name)));
}

// doing has the actions, one at a time. Each shows its effect first.
function doing(as, rule, counters, done) {
	const place = h("div"), rules = [...new Set(counters().map((c) => c.rule))];
	const actions = {
		Override: () => act("Override", [h("div.row", {}, rulesChoice(rules, rule), long()), field("Limits instead", "limits", { required: true, placeholder: "100/minute, or unlimited" }), offers(counters), reason()],
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
	return [h("div.row", {}, buttons), h("p.small.quiet", {}, "Other limits for a while, no access, a fresh start, or some events back. Nothing is done before you have seen what it does."), place];
}

// act is a form that shows the effect of an order, and below it the button to have it. A change of the order takes both
// away again.
function act(name, fields, order, done, danger) {
	const f = form(fields, [h("button", { value: "look" }, "Show effect")], async (values, pressed, out) => {
		const [path, body] = order(values);
		if (pressed !== "do") {
			show(out, previewed(await post(path, { ...body, preview: true })), h("div.row", {}, h("button." + (danger ? "danger" : "main"), { value: "do" }, name + " now")));
			say("This is the effect. Press " + name + " now to have it.");
		} else {
			const effect = await post(path, body);
			show(out, note("ok", name + " is done" + (effect.holds ? ": it " + effect.holds.replace(/^it /, "") : "") + ".", effect.measure ? " It is listed under Overrides and bans, where it can be ended." : ""));
			say(name + " is done.");
			await done();
		}
		out.focus({ preventScroll: true });
		out.scrollIntoView({ block: "nearest" });
	}, { class: "act" });
	f.addEventListener("input", () => f.lastChild.replaceChildren());
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
