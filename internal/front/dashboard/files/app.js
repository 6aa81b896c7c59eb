// The frame around all pages: who is signed in, which page is shown.
import { h, show, say } from "./dom.js";
import { findMe, me, signIn, signOut } from "./api.js";
import { pairsOf } from "./words.js";
import { empty, field, form, loading, note } from "./parts.js";
import home from "./home.js";
import rule from "./rule.js";
import offenders from "./offenders.js";
import key from "./key.js";
import explain from "./explain.js";
import rules from "./rules.js";
import fleet from "./fleet.js";
import audit from "./audit.js";
import why from "./why.js";

const pages = { "/": home, "/rule": rule, "/offenders": offenders, "/key": key, "/explain": explain, "/rules": rules, "/fleet": fleet, "/audit": audit, "/why": why };
const names = { "/": "Overview", "/offenders": "Offenders", "/rules": "Rules", "/explain": "Explain", "/why": "Why", "/fleet": "Fleet", "/audit": "Audit" };
const within = { "/rule": "/rules", "/key": "/offenders" };

const main = document.getElementById("main"), top = document.getElementById("top");
let leave = null, turn = 0;

// trouble shows why what is live is not; "" if it is.
function trouble(text) {
	const bar = document.getElementById("offline");
	if (bar && !text) bar.remove();
	else if (bar) bar.textContent = text;
	else if (text) top.after(h("p.offline", { id: "offline", role: "status" }, text));
}

async function route() {
	if (!me) return;
	const mine = ++turn;
	if (leave) { leave(); leave = null; }
	const [path, text] = location.hash.replace(/^#/, "").split(/\?(.*)/s);
	const at = pages[path || "/"] ? path || "/" : "/";
	show(document.getElementById("nav"), Object.entries(names).map(([to, name]) => h("a", { href: "#" + to, "aria-current": to === (within[at] || at) ? "page" : null }, name)));
	document.title = (names[at] || names[within[at]]) + " – Tidegate";
	let left = null;
	const place = h("div", {}, loading());
	try {
		// A page that takes long must not write over the next one.
		main.replaceChildren(place);
		left = await pages[at](place, new URLSearchParams(text || ""), trouble);
	} catch (p) {
		if (mine === turn && me) show(place, note("bad", p.message), empty("Try it on a terminal:", "tidegate health"));
	}
	if (mine !== turn) { if (left) left(); return; }
	leave = left;
	const title = place.querySelector("h1");
	if (within[at] && title) document.title = title.textContent + " – Tidegate";
}

// arrive shows a page to somebody who has come there by a link or a form: from its top, also by keyboard.
async function arrive() {
	await route();
	scrollTo(0, 0);
	main.focus({ preventScroll: true });
}

function frame() {
	top.hidden = false;
	show(document.getElementById("who"), h("span", { title: "known by " + me.via }, me.name + " · " + me.role), me.via === "session" ? h("button.plain", { type: "button", onclick: async () => { await signOut(); ask(); } }, "Sign out") : null);
}

// ask shows the form to sign in.
function ask(text) {
	turn++;
	if (leave) { leave(); leave = null; }
	trouble("");
	top.hidden = true;
	document.title = "Sign in – Tidegate";
	const f = form([field("Your token", "token", { type: "password", required: true, autocomplete: "current-password" })], [h("button.main", {}, "Sign in")], async (v) => {
		await signIn(v.token);
		frame();
		await arrive();
	});
	main.replaceChildren(h("section.card.signin", { "aria-label": "Sign in" }, h("h1", {}, "Tidegate"), text ? note("warn", text) : null, f,
		h("p.small.quiet", {}, "It stays here for 12 hours, in a cookie that no script can read. A token is made with ", h("code", {}, "openssl rand -hex 16"), " and a line in the file of ", h("code", {}, "admin.tokens"), ".")));
	f.elements.token.focus();
}

document.getElementById("search").addEventListener("submit", (e) => {
	e.preventDefault();
	const q = document.getElementById("q"), text = q.value.trim();
	if (!text) return;
	q.value = "";
	if (text.startsWith("rs1_")) location.hash = "#/why?" + new URLSearchParams({ slip: text });
	else if (/^[^\s=]+=/.test(text)) location.hash = "#/key?" + new URLSearchParams(pairsOf(text).map(([name, value]) => ["as", name + "=" + value]));
	else if (/^[0-9.]{7,15}$/.test(text) || /^[0-9a-f:]*:[0-9a-f:]*$/i.test(text)) location.hash = "#/key?" + new URLSearchParams({ as: "ip=" + text });
	else location.hash = "#/key?" + new URLSearchParams({ value: text });
});

addEventListener("hashchange", arrive);
document.querySelector(".skip").addEventListener("click", (e) => { e.preventDefault(); main.focus(); }); // what is behind # is a page
addEventListener("signed-out", () => { say("You are signed out."); ask("Your session has ended. Sign in again."); });

try {
	const p = await findMe();
	if (p && p.status === 403) main.replaceChildren(h("section.card.signin", {}, h("h1", {}, "Tidegate"), note("warn", p.message), empty("Give operators tokens, and reach it from anywhere:", "tidegate serve --admin.tokens operators")));
	else if (p) ask();
	else { frame(); await route(); }
} catch (p) {
	main.replaceChildren(note("bad", p.message));
}
