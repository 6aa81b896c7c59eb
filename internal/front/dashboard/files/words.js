// Numbers, times and names as people read them.

export const number = (n) => n.toLocaleString("en-US");

// short is a number in little room: 1,234, 12.3k, 4.5M.
export function short(n) {
	if (n < 10000) return number(Math.round(n));
	if (n < 1e6) return (n / 1000).toFixed(n < 1e5 ? 1 : 0) + "k";
	return (n / 1e6).toFixed(n < 1e8 ? 1 : 0) + "M";
}

export const rate = (n) => (n < 10 ? n.toFixed(1) : short(n)) + "/s";

export function percent(share) {
	if (share > 0 && share < 0.001) return "<0.1 %";
	return (100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0) + " %";
}

// span is a number of seconds: 45 s, 3 min, 2 h, 5 days.
export function span(seconds) {
	const n = Math.max(0, seconds);
	if (n < 10 && n % 1) return n.toFixed(1) + " s";
	if (n < 90) return Math.round(n) + " s";
	if (n < 5400) return Math.round(n / 60) + " min";
	if (n < 172800) return Math.round(n / 3600) + " h";
	return Math.round(n / 86400) + " days";
}

export const since = (time) => span((Date.now() - Date.parse(time)) / 1000);
export const until = (time) => span((Date.parse(time) - Date.now()) / 1000);

// clock is a time by the browser's clock, with its date unless that is today.
export function clock(time) {
	const t = new Date(time);
	const day = t.toDateString() === new Date().toDateString() ? "" : t.toLocaleDateString("en-CA") + " ";
	return day + t.toLocaleTimeString("en-GB");
}

export const plural = (n, one) => number(n) + " " + one + (n === 1 ? "" : "s");

// who is a subject: user=42; what is hidden has a #.
export function who(parts) {
	if (!parts || !parts.length) return "everyone";
	return parts.map((p) => p.value === "" && p.name === "everyone" ? "everyone" : p.name + "=" + (p.hashed ? "#" : "") + p.value).join(" ");
}

// asOf is the same for questions: names of identities without the source; null if something is hidden.
export function asOf(parts) {
	const as = {};
	for (const p of parts || []) {
		if (p.hashed) return null;
		as[p.name.split("/")[0]] = p.value;
	}
	return Object.keys(as).length ? as : null;
}

// pairsOf reads what people write: user=42 plan=pro. A value may have spaces.
export function pairsOf(text) {
	return text.trim().split(/\s+(?=[^\s=]+=)/).filter(Boolean).map((pair) => {
		const i = pair.indexOf("=");
		if (i < 1) throw new Error("Write a name and a value, as in user=42, and not " + pair + ".");
		return [pair.slice(0, i), pair.slice(i + 1)];
	});
}

export const asText = (as) => Object.entries(as).map(([name, value]) => name + "=" + value).join(" ");

// keyLink is the address of the page about somebody.
export const keyLink = (as, rule) => "#/key?" + new URLSearchParams([...Object.entries(as).map(([n, v]) => ["as", n + "=" + v]), ...(rule ? [["rule", rule]] : [])]);
// ruleLink is the address of the page about a rule; null for what is counted under a name that no file has.
export const ruleLink = (name) => name === "(ban)" || name === "cl.throttle" ? null : "#/rule?" + new URLSearchParams({ name });
