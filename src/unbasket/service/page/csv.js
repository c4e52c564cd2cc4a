// Reads CSV (RFC 4180): quotes, line breaks in quotes, commas or semicolons or tabs.

/** Text to rows of fields, without empty lines. */
export function rows(text) {
  const clean = text.replace(/^\uFEFF/, '');
  const found = [];
  let row = [''];
  for (const [mark, quoted, plain] of fields(clean, separator(clean))) {
    if (plain !== undefined || quoted !== undefined)
      row[row.length - 1] += quoted === undefined ? plain : quoted.replaceAll('""', '"');
    else if (mark === '\n' || mark === '\r\n' || mark === '\r') row = (found.push(row), ['']);
    else row.push('');
  }
  return [...found, row].filter((fields) => fields.some((field) => field.trim()));
}

function fields(text, between) {
  return text.matchAll(
    new RegExp(`"((?:[^"]|"")*)"|([^"${between}\\r\\n][^${between}\\r\\n]*|")|${between}|\\r\\n|\\n|\\r`, 'g'),
  );
}

function separator(text) {
  const line = text.split(/[\r\n]/, 1)[0];
  return [';', '\t'].find((mark) => line.includes(mark)) ?? ',';
}

/** Rows to objects, by the headings in the first row. Throws an Error in plain words. */
export function records(text, wanted, needed) {
  const [headings, ...lines] = rows(text);
  if (!headings) throw new Error('There is nothing in it.');
  const names = headings.map((heading) => heading.trim().toLowerCase());
  const unknown = names.find((name) => !wanted.includes(name));
  if (!names.includes(needed))
    throw new Error(`The first line must name the columns: ${wanted.join(', ')}. It has no column ${needed}.`);
  if (unknown !== undefined) throw new Error(`The column "${unknown}" is not one of ${wanted.join(', ')}.`);
  return lines.map((line, place) => {
    if (line.length > names.length)
      throw new Error(`Line ${place + 2} has ${line.length} fields, and there are ${names.length} columns.`);
    return Object.fromEntries(names.map((name, column) => [name, (line[column] ?? '').trim()]));
  });
}
