// Why somebody was refused, from their slip.
import { h, put, show } from "./dom.js";
import { post } from "./api.js";
import { asOf, clock, keyLink, since, who } from "./words.js";
import { card, empty, field, form, head, note } from "./parts.js";
import { standing } from "./key.js";

export default async function why(main, query) {
	const result = h("div", { "aria-live": "polite" });
	const f = form([field("Slip", "slip", { required: true, value: query.get("slip") || "", placeholder: "rs1_…", class: "mono", autocomplete: "off" })], [h("button.main", {}, "Open")], async (v) => open(result, v.slip));
	put(main, head("Why was I refused?"), h("div.grid", {}, h("section.card.w12", { "aria-label": "The slip" }, f), h("div.w12", {}, result)));
	if (query.get("slip")) {
		try { await open(result, query.get("slip")); } catch (p) { show(result, note("bad", p.message)); }
	} else show(result, empty("A refused client gets a slip in the header Refusal-Slip and in the body. Paste it here, or:", "tidegate why rs1_…"));
}

async function open(place, slip) {
	const w = await post("/why", { slip: slip.trim() });
	const as = asOf(w.refusal.subject);
	show(place, h("div.grid", {},
		card("w12", "What happened", h("p", {}, w.text), h("p.small.quiet", {}, "That was " + since(w.refusal.at) + " ago, at " + clock(w.refusal.at) + " by the clock of this browser."), as ? h("p", {}, h("a", { class: "button", href: keyLink(as, w.refusal.rule) }, "Look at " + who(w.refusal.subject))) : null),
		card("w5", "The rules then", w.gone ? note("warn", "Gone: " + w.gone + ".") : null,
			w.set ? h("p.small.quiet", {}, (w.set.revision || w.set.hash || "").slice(0, 16) + (w.set.in_force ? ", which are in force" : ", which are not in force any more") + ", since " + clock(w.set.since)) : null,
			w.rule ? [h("p.small.quiet", {}, w.rule.place), w.rule.text ? h("pre", { tabindex: "0" }, w.rule.text) : null, w.rule.limits ? h("p", {}, "They were held to " + w.rule.limits.join(", ") + (w.rule.tier ? ", as tier " + w.rule.tier : "") + ".") : null] : null),
		card("w7", "Where they stand now", w.now && w.now.length ? standing(w.now) : empty("Nothing counts them now under this rule, or the value is hidden. Whether an override or a ban holds for them:", "tidegate measures"))));
}
