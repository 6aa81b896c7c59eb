// The admin API, and who is asking.

export let me = null; // {name, role, via}
const roles = ["nobody", "scrape", "view", "operate", "rule"];

export const may = (role) => me && roles.indexOf(me.role) >= roles.indexOf(role);

export class Problem extends Error {
	constructor(status, detail) { super(detail); this.status = status; }
}

// ask returns the answer to a request, or throws a Problem with a sentence.
export async function ask(method, path, body) {
	let answer;
	try {
		answer = await fetch(path, {
			method, credentials: "same-origin", cache: "no-store",
			headers: body === undefined ? {} : { "Content-Type": "application/json" },
			body: body === undefined ? undefined : JSON.stringify(body),
		});
	} catch {
		throw new Problem(0, "The server does not answer.");
	}
	if (answer.status === 204) return null;
	const text = await answer.text();
	let value = null;
	try { value = JSON.parse(text); } catch { /* it is not JSON */ }
	if (answer.ok) return value;
	if (answer.status === 401 && me && path !== "/session") { me = null; dispatchEvent(new Event("signed-out")); }
	throw new Problem(answer.status, (value && value.detail) || text.trim() || "The server answered " + answer.status + ".");
}

export const get = (path, query) => ask("GET", path + (query ? "?" + new URLSearchParams(query) : ""));
export const post = (path, body) => ask("POST", path, body);

// findMe returns whether somebody is signed in.
export async function findMe() {
	try {
		me = await get("/session");
	} catch (p) {
		if (p.status !== 401 && p.status !== 403) throw p;
		me = null;
		return p;
	}
	return null;
}

export async function signIn(token) { me = await post("/session", { token }); }
export async function signOut() { await ask("DELETE", "/session"); me = null; }

const silent = "The server does not answer. What you see is from before; it is asked again.";

// follow calls f with what is live, until the function that it returns is called. A page that
// nobody sees follows nothing.
export function follow(rule, f, trouble) {
	let events = null, later = 0, left = false;
	const tell = (text) => { if (!left) trouble(text); };
	const open = () => {
		events = new EventSource("/live" + (rule ? "?rule=" + encodeURIComponent(rule) : ""));
		events.onmessage = (e) => { tell(""); f(JSON.parse(e.data)); };
		events.onerror = () => {
			if (events.readyState !== EventSource.CLOSED) { // it tries again by itself
				tell(silent);
				return;
			}
			events = null;
			later = setTimeout(change, 5000);
			findMe().then((p) => {
				if (p) dispatchEvent(new Event("signed-out"));
				else tell("The server feeds as many pages as it may (admin.pages), and not this one. It is asked again.");
			}, () => tell(silent));
		};
	};
	const change = () => {
		if (document.hidden && events) { events.close(); events = null; }
		if (!document.hidden && !events) open();
	};
	document.addEventListener("visibilitychange", change);
	change();
	return () => {
		trouble(""); // the next page is not about it
		left = true;
		clearTimeout(later);
		document.removeEventListener("visibilitychange", change);
		if (events) events.close();
	};
}

// again calls load every so many milliseconds, until the function that it returns is called, and says so if the server does
// not answer: what is shown is old then.
export function again(load, every, trouble) {
	let left = false;
	const tell = (text) => { if (!left) trouble(text); };
	const timer = setInterval(() => { if (!document.hidden) load().then(() => tell(""), (p) => tell(p.status ? p.message : silent)); }, every);
	return () => {
		trouble("");
		left = true;
		clearInterval(timer);
	};
}
