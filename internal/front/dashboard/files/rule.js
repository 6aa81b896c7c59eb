// A rule: its rates, its keys, what it says, and whether its numbers fit.
import { h, put, show } from "./dom.js";
import { follow, get } from "./api.js";
import { asOf, clock, keyLink, number, percent, plural, who } from "./words.js";
import { answered, card, draw, empty, head, meter, note, table, tag, totals } from "./parts.js";

export default async function rule(main, query, trouble) {
	const name = query.get("name") || "";
	const is = await get("/rules/rule", { rule: name });
	const top = h("div"), box = h("div.box"), foot = h("div"), keys = h("div");
	const tries = is.limits.filter((l) => l.role === "tries"), lives = is.limits.filter((l) => l.role !== "tries");
	const trial = is.mode === "enforce" ? "candidate" : "shadow"; // of a share, the rest is in shadow mode
	const part = (l) => l.role === "tries" ? tag("warn", trial) : tag("", l.role);
	put(main, head(name, tag(is.mode.startsWith("enforce") ? "ok" : "warn", is.mode), is.per ? h("p.quiet", {}, "counts by " + is.per) : null,
		h("p.push", {}, is.mode === "shadow" ? h("a", { href: "#/offenders?" + new URLSearchParams({ rule: name, by: "would_refuse" }) }, "Who would be refused")
			: h("a", { href: "#/offenders?" + new URLSearchParams({ rule: name }) }, "Who is refused"))),
	h("div.grid", {},
		h("section.card.w8", { "aria-label": "Traffic of the rule" }, top, box, foot),
		card("w4", "Limits", table("Limits", [["Limit"], ["Part", "n"]], [...lives, ...tries].map((l) => [l.limit, part(l)])),
			is.limits.length ? null : empty("It counts nothing for a caller about whom nothing is known. See for one:", "tidegate explain --as user=42 GET /")),
		card("w7", "Is the number right?", is.mode === "shadow" ? empty("The rule is in shadow mode, and refuses nobody. What it would refuse is counted beside it. By whom, on a terminal:", "tidegate keys top --by would_refuse") : fits(is.fit)),
		card("w5", is.mode === "shadow" ? "Whom it would refuse" : "How full its keys are", keys),
		card("w12", "As it is written", h("p.small.quiet", {}, is.place, " · ", h("a", { href: "#/rules" }, "Change the rules")), is.text ? h("pre", { tabindex: "0" }, is.text) : empty("The file is not at hand here. Look at it where the rules come from:", "tidegate rules status"),
			is.patterns && is.patterns.length ? h("p.small.quiet", {}, "Matches " + is.patterns.join(", ")) : null)));
	const stop = follow(name, (r) => {
		show(top, totals(r.traffic, r.would_refuse, trial));
		if ([...r.traffic.admitted, ...r.traffic.refused, ...r.would_refuse].some((n) => n)) draw(box, r.traffic, r.would_refuse);
		else show(box, empty("The rule has decided nothing in the last 15 minutes. Why not, for a request:", "tidegate explain GET /"));
		show(foot, answered(r.traffic));
	}, trouble);
	const near = async () => {
		const found = await get("/offenders", { rule: name, by: is.mode === "shadow" ? "would_refuse" : "nearest", minutes: 10, top: 8 });
		const entries = found.lists.flatMap((l) => l.entries);
		if (is.mode === "shadow") return show(keys, entries.length ? table("Whom it would refuse", [["Who"], ["Last 10 min", "n"]], entries.map((e) => [person(e.subject, name), number(e.count)]))
			: empty("It would have refused nobody in the last 10 minutes. Watch it live:", "tidegate top"));
		show(keys, entries.length ? table("Fullest keys", [["Who"], ["Most used, last 10 min", "wide"]], entries.map((e) => [person(e.subject, name), [percent(e.used), meter(e.used)]]), true)
			: empty("No key has used half of the limit in the last 10 minutes. Where one stands:", "tidegate keys get --as user=42"));
	};
	await near();
	const timer = setInterval(() => { if (!document.hidden) near().catch(() => {}); }, 10000);
	return () => { clearInterval(timer); stop(); };
}

export function person(subject, rule) {
	const as = asOf(subject);
	return as ? h("a", { href: keyLink(as, rule) }, who(subject)) : h("span", { title: "The value may be a secret, and is shown as a hash." }, who(subject));
}

// fits is the advice and what it rests on.
function fits(fit) {
	if (!fit) return empty("This server does not look at refusals.", "tidegate version");
	return [
		fit.advice.map((a) => note("", h("b", {}, a.text), h("div.small", {}, a.evidence))),
		fit.refusals ? table("What was seen", [["Seen by this node"], ["", "n"]], [
			["Refusals since " + clock(fit.since) + (fit.limit ? ", under " + fit.limit : ""), number(fit.refusals)],
			["Keys that were refused", (fit.keys > fit.sampled ? "about " : "") + number(fit.keys)],
			["… and never asked for more than 1.2 × the limit", number(fit.within_1_2) + " of " + number(fit.sampled)],
			["… and never for more than 2 ×", number(fit.within_2) + " of " + number(fit.sampled)],
			["Refusals in clumps shorter than 2 s", number(fit.short_refusals) + " of " + number(fit.clump_refusals)],
			["The busiest key asked for", (fit.heaviest || 0).toFixed(1) + " × the limit"],
		]) : h("p.small.quiet", {}, plural(0, "refusal") + " since " + clock(fit.since) + "."),
	];
}
