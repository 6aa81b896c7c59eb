// Elements without HTML in strings: text is always text.

// h makes an element: h("a", {href: "#/"}, "Overview"). Handlers are on*: functions.
export function h(tag, attributes, ...children) {
	const [name, ...classes] = tag.split(".");
	const e = document.createElement(name || "div");
	if (classes.length) e.className = classes.join(" ");
	return fill(e, attributes, children);
}

// s is h for SVG.
export function s(tag, attributes, ...children) {
	return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

// visible shows by their codes what cannot be seen, and what turns the order of a line around: names come from callers.
const visible = (text) => text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (c) => "\t\r\n".includes(c) ? c : "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));

// real are the children that there are, in one list.
const real = (children) => children.flat(3).filter((c) => c != null && c !== false).map((c) => typeof c === "string" ? visible(c) : c);

function fill(e, attributes, children) {
	for (const [name, value] of Object.entries(attributes || {})) {
		if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
		else if (name === "width%") e.style.width = value + "%";
		else if (value === true) e.setAttribute(name, "");
		else if (value !== false && value != null) e.setAttribute(name, value);
	}
	e.append(...real(children));
	return e;
}

// put gives a place other children.
export function put(place, ...children) { place.replaceChildren(...real(children)); }

// keep is put for elements that may be there already, which are left alone then.
export function keep(place, children) {
	if (children.length !== place.childNodes.length || children.some((c, i) => c !== place.childNodes[i])) put(place, children);
}

// show makes the children of a place look like these, and keeps the elements that are the same, so
// that whoever has the focus on one keeps it.
export function show(place, ...children) {
	const frame = document.createDocumentFragment();
	frame.append(...real(children));
	const focus = document.activeElement;
	merge(place, frame);
	if (focus !== document.activeElement && focus.isConnected) focus.focus({ preventScroll: true }); // it was moved
}

// merge makes the children of old those of fresh. Elements with a data-id are the same as those that had it, wherever
// they are now: a link that has the focus does not become one to somebody else.
function merge(old, fresh) {
	const now = [...fresh.childNodes];
	now.forEach((n, i) => {
		let o = old.childNodes[i];
		const id = idOf(n);
		if (id && o && idOf(o) !== id) {
			const same = [...old.childNodes].slice(i + 1).find((e) => idOf(e) === id);
			old.insertBefore(same || n, o);
			if (!same) return;
			o = same;
		}
		if (!o) old.append(n);
		else if (o.nodeType !== n.nodeType || o.nodeName !== n.nodeName || busy(o) || has(o) || has(n)) o.replaceWith(n);
		else if (o.nodeType === Node.TEXT_NODE) { if (o.data !== n.data) o.data = n.data; }
		else { copy(o, n); merge(o, n); }
	});
	while (old.childNodes.length > now.length) old.lastChild.remove();
}

const idOf = (e) => e.dataset ? e.dataset.id : undefined;

// Elements with handlers or a value of their own are replaced as a whole.
const has = (e) => e.nodeName === "BUTTON" || e.nodeName === "FORM" || e.nodeName === "INPUT";
const busy = (e) => e.nodeName === "TEXTAREA" || e.nodeName === "SELECT";

function copy(old, fresh) {
	const own = ({ name }) => name !== "style"; // which the policy lets scripts change by property alone
	for (const { name } of [...old.attributes].filter(own)) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
	for (const { name, value } of [...fresh.attributes].filter(own)) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
	if (fresh.style && old.style.width !== fresh.style.width) old.style.width = fresh.style.width;
}

// say tells screen readers what has happened.
export function say(text) { document.getElementById("said").textContent = text; }
