// Who is refused, asks most, or is near a limit.
import { h, put, show } from "./dom.js";
import { again, get } from "./api.js";
import { number, percent, plural, ruleLink } from "./words.js";
import { card, choice, empty, field, form, head, table } from "./parts.js";
import { person } from "./rule.js";

const kinds = [["refused", "Refused most"], ["would_refuse", "A candidate or shadow would refuse"], ["requests", "Ask most"], ["nearest", "Nearest to the limit"]];

export default async function offenders(main, query, trouble) {
	const by = query.get("by") || "refused", minutes = query.get("minutes") || "10", rule = query.get("rule") || "", search = query.get("search") || "";
	const list = h("div");
	const go = (values) => { location.hash = "#/offenders?" + new URLSearchParams(Object.entries(values).filter(([, v]) => v)); };
	const filter = form([h("div.row", {}, choice("List", "by", kinds), choice("In the last", "minutes", [["1", "minute"], ["10", "10 minutes"]]), field("Rule", "rule", { value: rule, placeholder: "all" }), field("Contains", "search", { value: search, placeholder: "any value" }))],
		[h("button", {}, "Show")], async (v) => go(v));
	filter.elements.by.value = by;
	filter.elements.minutes.value = minutes;
	put(main, head("Offenders", h("p.quiet", {}, "of the whole fleet")), h("div.grid", {}, h("section.card.w12", { "aria-label": "What to list" }, filter), card("w12", kinds.find(([k]) => k === by)[1], list)));
	const load = async () => {
		const found = await get("/offenders", { by, minutes, top: 30, ...(rule ? { rule } : {}), ...(search ? { search } : {}) });
		const rows = found.lists.flatMap((l) => l.entries.map((e) => [l, e])).sort((a, b) => by === "nearest" ? b[1].used - a[1].used : b[1].count - a[1].count);
		show(list, rows.length ? table("Offenders", [["Who"], [by === "nearest" ? "Used" : "How often", "n"], ["Rule"], ["Limit"]], rows.slice(0, 60).map(([l, e]) => [
			person(e.subject, l.rule),
			by === "nearest" ? percent(e.used) : e.at_least === e.at_most ? number(e.count) : number(e.at_least) + "–" + number(e.at_most),
			h("a", { href: ruleLink(l.rule) }, l.rule), e.limit || "–",
		]), true) : nobody(by, search),
		rows.some(([, e]) => e.subject.some((p) => p.hashed)) ? empty("Values that may be secrets are shown as hashes (#…). To look at somebody, search for the whole value above, or show all values:", "tidegate serve --log.keys plain") : null,
		h("p.small.quiet", {}, plural(found.nodes.length, "node") + " answered", found.missing ? "; missing: " + found.missing.join("; ") : "", "."));
	};
	await load();
	return again(load, 5000, trouble);
}

function nobody(by, search) {
	if (search) return empty("Nobody with that in their name is listed. Look at somebody by name instead:", "tidegate keys get --as user=" + search);
	if (by === "refused") return empty("Nobody was refused. Watch it live:", "tidegate top");
	return empty("Nobody is listed. Watch it live:", "tidegate top");
}
