// The first page: is all well, what is refused, by which rules, where, and what was ordered.
import { h, put, show } from "./dom.js";
import { follow } from "./api.js";
import { number, percent, since, until, short, asText, keyLink, ruleLink } from "./words.js";
import { answered, card, draw, empty, icon, loading, meter, table, tag, totals } from "./parts.js";

export default function home(main, _, trouble) {
	const verdict = h("div", {}, loading()), top = h("div"), box = h("div.box"), foot = h("div"), rules = h("div"), nodes = h("div"), orders = h("div");
	put(main, h("div", { role: "status" }, verdict), h("div.grid", {},
		h("section.card.w8", { "aria-label": "Traffic" }, top, box, foot),
		card("w4", "Nodes", nodes),
		card("w7", "Rules that refuse the largest share", rules),
		card("w5", "Overrides and bans in force", orders)));
	return follow("", (o) => {
		document.title = (o.verdict.level === "ok" ? "" : "⚠ ") + "Tidegate";
		show(verdict, h("div.verdict." + o.verdict.level, {}, icon(o.verdict.level), h("div", {},
			h("h1", {}, o.verdict.text), o.verdict.more ? h("ul", {}, o.verdict.more.map((t) => h("li", {}, t))) : null)));
		show(top, totals(o.traffic));
		if (o.traffic.admitted.some((n) => n) || o.traffic.refused.some((n) => n)) draw(box, o.traffic);
		else show(box, o.gateway && o.gateway.startsWith("http") ? empty("No request was decided in the last 15 minutes. Send one through the gateway:", "curl -i " + o.gateway + "/")
			: empty("No request was decided in the last 15 minutes. See what one would meet:", "tidegate explain GET /"));
		show(foot, answered(o.traffic));
		show(rules, busiest(o));
		show(nodes, listNodes(o));
		show(orders, ordered(o.measures));
	}, trouble);
}

function busiest(o) {
	if (!o.rules) return empty("There are no rules, so nothing is limited. Write some:", "tidegate init");
	if (!o.busiest.length) return empty(number(o.rules) + (o.rules === 1 ? " rule is" : " rules are") + " in force, and none was asked yet. See what a request would meet:", "tidegate explain GET /");
	const none = !o.busiest.some((r) => r.refused);
	return [
		none ? empty("Nobody was refused in the last 15 minutes. Who is near a limit:", "tidegate keys top --by nearest") : null,
		table("Rules", [["Rule"], ["Refused", "n"], ["Share", "wide"], ["Who", "n"]], o.busiest.map((r) => [
			h("a", { href: ruleLink(r.rule) }, r.rule),
			[short(r.refused), h("span.quiet", {}, " of " + short(r.admitted + r.refused))],
			[percent(r.share), meter(r.share, percent(r.share) + " refused", "refused")],
			h("a", { href: "#/offenders?" + new URLSearchParams({ rule: r.rule }), "aria-label": "See who is refused by " + r.rule }, "see who"),
		]), true)];
}

function listNodes(o) {
	const kind = (n) => n.problem ? "warn" : n.store === "ok" ? "ok" : n.store === "unknown" ? "" : "bad";
	const word = (n) => n.problem ? "look" : o.shared ? n.store : "ok";
	return [
		o.nodes.length ? table("Nodes", [["Node"], ["Rules"], ["State", "n"]], o.nodes.map((n) => [
			[n.name, n.self && o.nodes.length > 1 ? h("span.quiet", {}, " (this)") : null, n.problem ? h("div.small.quiet", {}, n.problem) : null],
			[h("span.mono", {}, n.revision || "–"), n.since ? h("div.small.quiet", {}, "for " + since(n.since)) : null],
			tag(kind(n), word(n)),
		])) : empty("The nodes cannot be listed: " + (o.unknown || "there are no rules") + ". Ask Redis itself:", "tidegate fleet --redis redis://HOST:6379"),
		o.shared ? null : empty("Counters are in the memory of this process. To share them with other nodes:", "tidegate serve --store.redis redis://HOST:6379"),
	];
}

export function ordered(measures) {
	if (!measures.length) return empty("Nobody is banned, and nobody has other limits. Give somebody more for a while:", "tidegate override user=42 --rule api --limits 100/minute --for 1h --reason why");
	return table("Overrides and bans", [["Who"], ["What", "wide"], ["Ends", "n", "ends"]], measures.map((m) => [
		h("a", { href: keyLink(m.as) }, asText(m.as).replace(/^everyone=$/, "everyone")),
		[tag(m.kind === "ban" ? "bad" : "", m.kind), " ", m.limits ? m.limits.join(", ") + " " : "", m.rule ? "under " + m.rule : "", h("div.small.quiet", {}, m.reason + " – " + m.by), m.problem ? h("div.small", {}, tag("warn", m.problem)) : null],
		m.until ? "in " + until(m.until) : "when ended",
	]), true);
}
