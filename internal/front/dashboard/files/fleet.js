// The nodes that share the counters.
import { h, put, show } from "./dom.js";
import { again, get } from "./api.js";
import { clock, number, since } from "./words.js";
import { card, empty, head, note, table, tag } from "./parts.js";

export default async function fleet(main, _, trouble) {
	const list = h("div"), rules = h("div");
	put(main, head("Fleet"), h("div.grid", {}, card("w12", "Nodes", list), card("w12", "Rules in force", rules)));
	const load = async () => {
		const [is, status] = await Promise.all([get("/fleet").catch((p) => p), get("/rules/status").catch((p) => p)]);
		for (const p of [is, status]) if (p instanceof Error && !p.status) throw p; // nobody answers
		show(list, is instanceof Error ? empty(is.message + " To share them:", "tidegate serve --store.redis redis://HOST:6379") : [
			(is.warnings || []).map((w) => note("warn", w)), is.incomplete ? note("warn", is.incomplete) : null,
			table("Nodes", [["Node"], ["Store"], ["Version", "", "version"], ["Clock", "n", "clock"], ["Backlog", "n", "backlog"], ["Leases", "n", "leases"], ["Share", "n", "share"], ["Seen", "n", "seen"]], is.instances.map((n) => [
				[n.name || n.id, n.self ? h("span.quiet", {}, " (this)") : null],
				n.circuit ? [tag(n.circuit.status === "ok" ? "ok" : "bad", n.circuit.status), h("div.small.quiet", {}, "for " + since(n.circuit.since))] : tag("", "unknown"),
				n.version || "–", n.clock ? (Math.round(n.clock.offset_seconds * 1000) || 0) + " ms" : "–", number(n.backlog), number(n.leases), (100 * n.share).toFixed(0) + " %", n.seen ? since(n.seen) + " ago" : "–",
			]), true)]);
		show(rules, status instanceof Error ? empty(status.message + " Write some:", "tidegate init") : [
			(status.warnings || []).map((w) => note("warn", w)), status.current ? note("ok", "Every node runs the newest rules.") : null,
			table("Rules in force", [["Node"], ["Rules", "", "rules"], ["Since", "", "since"], ["Sources", "wide"]], status.instances.map((n) => [
				[n.name || n.id || "this process", n.self ? h("span.quiet", {}, " (this)") : null, n.follows ? h("span.quiet", {}, " follows") : null],
				[number(n.rules), h("div.small.quiet.mono", {}, (n.hash || "").slice(0, 12))], n.since ? clock(n.since) : "–",
				(n.layers || []).map((l) => h("div", {}, l.name, h("span.quiet.mono", {}, " " + (l.revision || "").slice(0, 12)), l.error ? [" ", tag("bad", l.error)] : null)),
			]), true),
			(status.refusals || []).map((r) => note("bad", r.on.join(", ") + " refuse " + (r.revision || "what is new") + " of " + r.layer + ":", h("pre", {}, r.message)))]);
	};
	await load();
	return again(load, 5000, trouble);
}
