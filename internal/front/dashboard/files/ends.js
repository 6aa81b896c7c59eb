// The ends of lines, which a textarea shows as \n whatever they are.

// edited returns a text after a textarea that showed it has shown something else: what stays is as it was, byte by byte, and
// a line that is new or other ends as the one in whose place it is.
export function edited(text, shown) {
	if (!text.includes("\r")) return shown;
	// Lines with what is before the \n of their end; \r\r stands for an end of \r alone. The last has no end.
	const was = text.replace(/\r(?!\n)/g, "\r\r\n").split("\n"), is = shown.split("\n");
	const end = (i) => was[i] === undefined || i === was.length - 1 ? undefined : was[i].slice(was[i].search(/\r*$/));
	const ends = ["", "\r", "\r\r"], same = (i, j) => was[i].startsWith(is[j]) && ends.includes(was[i].slice(is[j].length)) && (i === was.length - 1) === (j === is.length - 1);
	let from = 0, endWas = was.length, endIs = is.length;
	while (from < endWas && from < endIs && same(from, from)) from++;
	while (endWas > from && endIs > from && same(endWas - 1, endIs - 1)) { endWas--; endIs--; }
	const ended = (line, i) => i === is.length - 1 ? line : line + (end(Math.min(i, endWas - 1)) ?? end(from - 1) ?? end(0));
	return [...was.slice(0, from), ...is.slice(from, endIs).map((line, i) => ended(line, from + i)), ...was.slice(endWas)].join("\n")
		.replace(/\r\r\n(\n*)/g, (_, blank) => "\r" + "\r".repeat(blank.length)); // \r and the \n of an empty line would be one end
}
