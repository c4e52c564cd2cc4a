// Reads and writes CSV (RFC 4180): quotes, line breaks in quotes, commas or semicolons or tabs. Every row knows its line.

/** Parse text into rows {line, fields}; `blank` lists the empty lines between them. */
export function rows(text) {
  const clean = text.replace(/^\uFEFF/, '').trimEnd();
  const [found, blank] = [[], []];
  let [line, row] = [1, {line: 1, fields: ['']}];
  const end = () => (row.fields.some((field) => field.trim()) ? found.push(row) : blank.push(row.line));
  for (const {0: mark, groups} of fields(clean, separator(clean))) {
    const {quoted, plain, open} = groups;
    if (open !== undefined) throw new Error(`Line ${line} opens a quote that is never closed.`);
    if (plain !== undefined) row.fields[row.fields.length - 1] += plain;
    else if (quoted !== undefined) row.fields[row.fields.length - 1] += quoted.replaceAll('""', '"');
    else if (!/[\r\n]/.test(mark)) row.fields.push('');
    line += mark.split(/\r\n|\n|\r/).length - 1;
    if (quoted === undefined && /[\r\n]/.test(mark)) {
      end();
      row = {line, fields: ['']};
    }
  }
  end();
  return {rows: found, blank};
}

/** Split a CSV text into tokens: quoted, plain, an unclosed quote, a separator, an end of line. */
function fields(text, between) {
  return text.matchAll(
    new RegExp(
      `"(?<quoted>(?:[^"]|"")*)"|(?<open>")|(?<plain>[^"${between}\\r\\n][^${between}\\r\\n]*)` +
        `|${between}|\\r\\n|\\n|\\r`,
      'g',
    ),
  );
}

function separator(text) {
  const line = text.split(/[\r\n]/, 1)[0];
  return [';', '\t'].find((mark) => line.includes(mark)) ?? ',';
}

/** Turn rows into objects with their `line`, by the headings in the first row. Throws an Error in plain words. */
export function records(text, wanted, needed) {
  const {
    rows: [headings, ...lines],
    blank,
  } = rows(text);
  if (!headings) throw new Error('There is nothing to check.');
  const names = headings.fields.map((heading) => heading.trim().toLowerCase());
  const unknown = names.find((name) => !wanted.includes(name));
  if (!names.includes(needed))
    throw new Error(`The first line must name the columns: ${wanted.join(', ')}. There is no column “${needed}”.`);
  if (unknown !== undefined) throw new Error(`The column “${unknown}” is not one of ${wanted.join(', ')}.`);
  const found = lines.map(({line, fields}) => {
    if (fields.length > names.length)
      throw new Error(`Line ${line} has ${fields.length} fields, but there are ${names.length} columns.`);
    return {line, ...Object.fromEntries(names.map((name, column) => [name, (fields[column] ?? '').trim()]))};
  });
  return {records: found, blank};
}

/** Write rows as CSV. An apostrophe stands before a text that a spreadsheet would run as a formula. */
export function csv(rows) {
  const cell = (value) => {
    const text = String(value);
    const safe = /^[=+\-@\t\r]/.test(text) && !/^-?\d+$/.test(text) ? `'${text}` : text;
    return /[",;\r\n\t]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => `${row.map(cell).join(',')}\r\n`).join('');
}
