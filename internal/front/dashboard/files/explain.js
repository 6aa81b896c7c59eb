// What the rules make of a request.
import { h, put, show } from "./dom.js";
import { post } from "./api.js";
import { pairsOf, ruleLink } from "./words.js";
import { card, empty, field, form, head, note, table, tag } from "./parts.js";

export default function explain(main) {
	const result = h("div", { "aria-live": "polite" }, empty("Describe a request, and see which rules it meets. The same on a terminal:", "tidegate explain --as user=42 GET /api/things"));
	const f = form([
		h("div.row", {}, h("label.tight", {}, "Method", h("input", { name: "method", value: "GET" })), field("Path or URL", "url", { required: true, value: "/" })),
		field("Who, as in user=42 plan=pro", "as", { placeholder: "ip=203.0.113.7" }),
		field("Headers, one a line", "headers", { class: "short", rows: 3, placeholder: "X-Plan: pro" }, "textarea"),
	], [h("button.main", {}, "Explain")], async (v) => {
		const headers = v.headers.split("\n").filter((line) => line.trim()).map((line) => {
			const i = line.indexOf(":");
			if (i < 1) throw new Error("Write a header and its value, as in X-Plan: pro, and not " + line.trim() + ".");
			return [line.slice(0, i).trim(), line.slice(i + 1).trim()];
		});
		show(result, explained(await post("/rules/explain", { method: v.method, url: v.url, as: Object.fromEntries(pairsOf(v.as)), headers: Object.fromEntries(headers) })));
	});
	put(main, head("Explain", h("p.quiet", {}, "Nothing is charged.")), h("div.grid", {}, card("w5", "A request", f), card("w7", "What the rules make of it", result)));
}

function explained(e) {
	const found = e.identities.filter((i) => !i.missing);
	return [
		e.ban ? note("bad", "They are banned: " + e.ban.reason + ".") : null, e.exempt ? note("", "It is exempt, at " + e.exempt + ".") : null,
		h("p", {}, e.method + " " + e.path + ", by ", found.length ? found.map((i) => i.name + "=" + i.value).join(" ") : "nobody that the rules know", "."),
		e.rules.length ? table("Rules", [["Rule"], ["Applies"], ["What it is held to", "wide"]], e.rules.map((r) => [
			[h("a", { href: ruleLink(r.name) }, r.name), h("div.small.quiet", {}, r.place)],
			r.applies ? tag(r.decides ? "ok" : "warn", r.decides ? "yes" : r.mode) : tag("", "no"),
			[r.why ? h("div", {}, r.why) : null, r.unlimited ? "unlimited" : null, (r.checks || []).map((c) => h("div", {}, c.limit + (c.role === "decides" ? "" : " (" + c.role + ")") + ", counted for " + (c.key || "everyone"))),
				r.override ? h("div.small", {}, tag("", "override"), " " + r.override.reason) : null, r.tier ? h("div.small.quiet", {}, "tier " + r.tier) : null],
		]), true) : empty("No rule is for this request. What is doubtful about the rules:", "tidegate lint rules.yaml"),
	];
}
