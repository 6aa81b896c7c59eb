// Who did what, and why.
import { h, put, show } from "./dom.js";
import { get } from "./api.js";
import { clock } from "./words.js";
import { card, choice, empty, field, form, head, note, table, tag } from "./parts.js";

export default async function audit(main, query) {
	const q = Object.fromEntries(["who", "action", "result"].map((n) => [n, query.get(n) || ""]));
	const list = h("div");
	const f = form([h("div.row", {}, field("Who", "who", { value: q.who, placeholder: "all" }), field("Action", "action", { value: q.action, placeholder: "override, ban, apply, …" }), choice("Result", "result", [["", "any"], ["done", "done"], ["failed", "failed"], ["refused", "refused"]]))],
		[h("button", {}, "Show")], async (v) => { location.hash = "#/audit?" + new URLSearchParams(Object.entries(v).filter(([, t]) => t)); });
	f.elements.result.value = q.result;
	put(main, head("Audit", h("p.quiet", {}, "the newest first")), h("div.grid", {}, h("section.card.w12", { "aria-label": "What to list" }, f), card("w12", "Entries", list)));
	let page;
	try { page = await get("/audit", { n: 200, ...Object.fromEntries(Object.entries(q).filter(([, v]) => v)) }); } catch (p) { return show(list, empty(p.message, "tidegate serve --admin.audit audit.log")); }
	show(list, page.incomplete ? note("warn", page.incomplete) : null, page.entries.length ? table("Entries", [["When"], ["Who"], ["Action"], ["What", "wide"], ["Why", "wide"]], page.entries.map((e) => [
		[h("span", { title: e.at }, clock(e.at)), h("div.small.quiet", {}, e.node || "")], [e.who || "–", h("div.small.quiet", {}, e.role || "")],
		[e.action, e.result === "done" ? null : [" ", tag("bad", e.result)]], [what(e.what), e.error ? h("div.small", {}, e.error) : null], e.reason || "–",
	]), true) : empty("Nobody did anything yet.", "tidegate audit"));
}

// value is one as people read it: of a hash, they compare how it begins.
const value = (v) => typeof v !== "string" ? Array.isArray(v) ? v.join(", ") : JSON.stringify(v) : /^[0-9a-f]{64}$/.test(v) ? v.slice(0, 12) : v.slice(0, 40);

function what(is) {
	return Object.entries(is || {}).filter(([n]) => n !== "id" && n !== "holds").map(([n, v]) => n === "as" ? Object.entries(v).map(([a, b]) => a + "=" + b).join(" ") : n + "=" + value(v)).join(" ");
}
